from gb300serve.journal.history import RunHistory
from tests.support.entries import V13, V14, entry, record
from tests.support.fake_clock import START

REPLACED = entry(at=START + 100.0, before=(V13,), after=(V14,))
ENDED = entry(at=START + 200.0, verb="down", result="stopped", before=(V14,), after=())
DIED = entry(at=START + 200.0, result="died", before=(V14,), after=())


def test_what_should_serve_is_what_the_last_change_left() -> None:
    told = RunHistory((entry(after=(V13,)), REPLACED, entry(on="sim", after=())))
    assert told.serving("docker") == REPLACED
    assert RunHistory().serving("docker") is None


def test_who_was_asked_to_end() -> None:
    assert RunHistory((REPLACED,)).was_asked_to_end("id-v13", START + 99.0)
    assert not RunHistory((REPLACED,)).was_asked_to_end("id-v14", START + 150.0)
    assert RunHistory((REPLACED, ENDED)).was_asked_to_end("id-v14", START + 199.0)
    assert not RunHistory((REPLACED, DIED)).was_asked_to_end("id-v14", START + 199.0)
    assert not RunHistory((REPLACED, ENDED)).was_asked_to_end("id-v14", START + 9000.0)
    assert not RunHistory().was_asked_to_end("id-v14", None)


def test_since_when_a_container_runs_and_whether_it_was_seen_to_serve() -> None:
    started = entry(at=START + 100.0, result="started", before=(V13,), after=(V13, V14), run="r2")
    told = RunHistory((entry(after=(V13,)), started, entry(on="sim", after=())), (record("v14", run="r2"),))
    assert [told.began(each.id, "docker") for each in (V13, V14)] == [START, START + 100.0]
    assert told.began("id-v15", "docker") is None
    assert told.became_ready("id-v13", START)
    assert not told.became_ready("id-v14", START + 100.0)
    beside = entry(at=START + 200.0, before=(V14,), after=(V13, V14), run="r3")
    assert not RunHistory((started, beside), (record("v13", run="r3"),)).became_ready("id-v14", START)
    assert RunHistory((started, beside), (record("v14", run="r3"),)).became_ready("id-v14", START)


def test_a_launch_is_under_way_until_its_entry_is_there() -> None:
    booting = record(state="booting", at=150.0, ready_seconds=None)
    assert RunHistory((REPLACED,), (booting,)).under_way("docker")
    assert not RunHistory((REPLACED,), (booting,)).under_way("sim")
    assert not RunHistory((REPLACED, ENDED), (booting,)).under_way("docker")
    assert not RunHistory((REPLACED,), (record(at=150.0),)).under_way("docker")


def test_the_last_good_run_of_another_plan() -> None:
    runs = (
        record("v12"),
        record("v13", 1.0),
        record("v15", 2.0, ready_seconds=None, state="started"),
        record("v14", 3.0),
    )
    told = RunHistory((), runs)
    assert told.last_good("deepseek-v4.1-flash", "docker", other_than="plan-v14") == runs[1]
    assert told.last_good("deepseek-v4.1-flash", "docker", other_than="plan-v13") == runs[3]
    assert told.last_good("deepseek-v4.1-flash", "docker", other_than="plan-v14", release="v12") == runs[0]
    assert told.last_good("deepseek-v4.1-flash", "docker", other_than=None, release="v15") is None
    assert told.last_good("deepseek-v4.1-flash", "sim", other_than=None) is None
    assert told.last_good("glm", "docker", other_than=None) is None
