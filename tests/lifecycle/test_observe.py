from dataclasses import replace

from gb300serve.lifecycle.backend import Listener
from gb300serve.lifecycle.observe import Observed, observe
from tests.support.launches import FOUND, IMAGE, STRANGER, backend, container, launch, plan

V14 = launch()


class FakeListeners:
    def on(self, port: int) -> Listener | None:
        return next(iter(self.each_on(port)), None)

    def each_on(self, port: int) -> tuple[Listener, ...]:
        return (Listener(port, "0.0.0.0"),) if port == 30006 else ()


def test_a_bare_machine() -> None:
    assert observe(backend(), plan()) == Observed(image=FOUND)


def test_all_that_a_launch_cares_for() -> None:
    station, neighbour = backend(), backend()
    station.add(STRANGER)
    simulated = neighbour.add(container(V14))
    neighbour.add(container(launch("v13"), state="exited"))
    assert observe(station, plan(), FakeListeners(), (neighbour,)) == Observed(
        containers=(STRANGER,),
        image=FOUND,
        neighbours=(simulated,),
        listeners=(Listener(30006, "0.0.0.0"),),
    )


def test_the_tag_is_looked_up_only_when_the_digest_is_not_there() -> None:
    station = backend()
    station.images = {IMAGE.partition("@")[0]: FOUND}
    found = observe(station, plan())
    assert (found.image, found.tagged) == (None, FOUND)
    station.images = {}
    assert observe(station, replace(plan(), image="local:x")).tagged is None


def test_names_are_exact() -> None:
    observed = Observed(containers=(STRANGER,))
    assert observed.named("someone") == STRANGER
    assert observed.named("id-stranger") is None
