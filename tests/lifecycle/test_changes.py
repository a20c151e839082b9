from gb300serve.core.errors import BackendError
from gb300serve.journal.journal import RunningLane
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.recorder import as_serving, named, serving
from tests.support.fake_backend import FakeBackend
from tests.support.launches import STRANGER, backend, container, launch

V14 = launch()


def test_what_serves_is_ours_and_runs() -> None:
    station = backend()
    station.add(container(V14))
    station.add(container(launch("v13"), state="exited", finished_at=1.0))
    station.add(STRANGER)
    found = serving(station)
    assert found == (RunningLane("deepseek-v4.1-flash/v14", "dsv41-vllm", "id-v14", V14.digest),)
    assert found == (as_serving(container(V14)),)
    assert named(found) == "deepseek-v4.1-flash/v14 (dsv41-vllm)"
    assert named(()) == "nothing"


def test_an_engine_that_does_not_answer_says_nothing() -> None:
    class Silent(FakeBackend):
        def containers(self) -> tuple[Container, ...]:
            raise BackendError("no Docker Engine answers")

    assert serving(Silent()) == ()
