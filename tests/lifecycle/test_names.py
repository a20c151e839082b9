from gb300serve.journal.journal import stamp
from gb300serve.lifecycle.launch import condition, failed_name, is_failed, kept_name, moment, ref_of, title
from tests.support.fake_clock import START
from tests.support.launches import STRANGER, container, launch

V14 = launch()
CHANGED = {"gb300serve.lane": "l", "gb300serve.release": "v14+set", "gb300serve.plan": "d"}


def test_moments_are_utc() -> None:
    assert stamp(START) == "20261129T195003Z"
    assert moment(START) == "2026-11-29 19:50:03Z"
    assert moment(None) == "an unknown time"


def test_names_say_what_a_container_was() -> None:
    assert kept_name("dsv41", container(V14), START) == "dsv41-kept-v14-20261129T195003Z"
    assert kept_name("dsv41", container(V14, labels=CHANGED), START) == "dsv41-kept-v14-set-20261129T195003Z"
    assert failed_name("dsv41", START) == "dsv41-failed-20261129T195003Z"
    assert is_failed(container(V14, name="dsv41-failed-20261129T195003Z"))
    assert not is_failed(container(V14, name="dsv41-kept-v14-20261129T195003Z"))


def test_titles() -> None:
    assert title(container(V14)) == "deepseek-v4.1-flash/v14 (container dsv41-vllm)"
    assert title(STRANGER) == "container someone (image lmsysorg/sglang:dev)"
    assert ref_of(container(V14, labels=CHANGED)) == "l/v14"


def test_conditions() -> None:
    assert condition(STRANGER) == "running since 2026-11-29 17:50:03Z"
    assert condition(container(V14, state="created")) == "created 2026-11-29 18:50:03Z and never started"
    ended = container(V14, state="exited", finished_at=START, exit_code=137, oom_killed=True)
    assert condition(ended) == "stopped 2026-11-29 19:50:03Z with exit code 137, out of memory"
