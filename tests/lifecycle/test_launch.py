from dataclasses import replace

import pytest

from gb300serve.journal.journal import format_stamp
from gb300serve.lifecycle.launch import (
    Launch,
    describe_container,
    describe_state,
    display_time,
    failed_name,
    host_ports,
    is_failed,
    kept_name,
    option_values,
    pinned_arguments,
    ref_of,
)
from gb300serve.plan.model import Secret, digest
from gb300serve.render.docker_run import pinned_text
from tests.support.fake_clock import START
from tests.support.launches import COMMAND, STRANGER, contained, container, launch, plan

V14 = launch()


def test_labels_tell_lane_release_and_plan() -> None:
    assert V14.labels == {
        "gb300serve.lane": "deepseek-v4.1-flash",
        "gb300serve.release": "v14",
        "gb300serve.plan": digest(V14.plan),
    }
    changed = replace(V14, plan=replace(plan(), recipe="deepseek-v4.1-flash/v14+set", release="v14+set"))
    assert changed.labels["gb300serve.release"] == "v14+set"
    assert changed.ref == "deepseek-v4.1-flash/v14"


def test_the_endpoint_carries_the_key() -> None:
    assert V14.endpoint.url == "http://127.0.0.1:30006"
    assert V14.endpoint.api_key is None
    assert replace(V14, address="::1").endpoint.url == "http://[::1]:30006"

    def keyed(*words: str, **secrets: str) -> str | None:
        return Launch(replace(plan(), command=(*COMMAND, *words)), secrets).endpoint.api_key

    assert keyed("--api-key", "${secret:OTHER}", OTHER="sesame") == "sesame"
    assert keyed("--api-key=${secret:OTHER}", OTHER="sesame") == "sesame"
    assert keyed(VLLM_API_KEY="sesame") == "sesame"
    assert Launch(contained(plan(), env={"VLLM_API_KEY": "plain"})).endpoint.api_key == "plain"


def test_secrets_do_not_show() -> None:
    shown = Launch(plan(), {"VLLM_API_KEY": "sesame"})
    assert "sesame" not in repr(shown)
    assert "sesame" not in repr(shown.endpoint)


def test_ports_of_the_host() -> None:
    assert host_ports(plan()) == (30006,)
    published = contained(plan(), network=None, ports=("8021:8000", "127.0.0.1:9:9/tcp", "7000"))
    assert host_ports(published) == (8021, 9)
    assert host_ports(replace(plan(), port=None)) == ()


CHANGED = {"gb300serve.lane": "l", "gb300serve.release": "v14+set", "gb300serve.plan": "d"}


def test_moments_are_utc() -> None:
    assert format_stamp(START) == "20261129T195003Z"
    assert display_time(START) == "2026-11-29 19:50:03Z"
    assert display_time(None) == "an unknown time"


def test_names_say_what_a_container_was() -> None:
    assert kept_name("dsv41", container(V14), START) == "dsv41-kept-v14-20261129T195003Z"
    assert kept_name("dsv41", container(V14, labels=CHANGED), START) == "dsv41-kept-v14-set-20261129T195003Z"
    assert failed_name("dsv41", START) == "dsv41-failed-20261129T195003Z"
    assert is_failed(container(V14, name="dsv41-failed-20261129T195003Z"))
    assert not is_failed(container(V14, name="dsv41-kept-v14-20261129T195003Z"))


def test_titles() -> None:
    assert describe_container(container(V14)) == "deepseek-v4.1-flash/v14 (container dsv41-vllm)"
    assert describe_container(STRANGER) == "container someone (image lmsysorg/sglang:dev)"
    assert ref_of(container(V14, labels=CHANGED)) == "l/v14"


def test_conditions() -> None:
    assert describe_state(STRANGER) == "running since 2026-11-29 17:50:03Z"
    assert describe_state(container(V14, state="created")) == "created 2026-11-29 18:50:03Z and never started"
    ended = container(V14, state="exited", finished_at=START, exit_code=137, oom_killed=True)
    assert describe_state(ended) == "stopped 2026-11-29 19:50:03Z with exit code 137, out of memory"


WORDS = ("/model", "--names", "a", "b", "--flag", "--port=1", "--port", "2")


@pytest.mark.parametrize(
    ("flag", "expected"),
    [("--names", ("a", "b")), ("--flag", ()), ("--port", ("1", "2")), ("--absent", ())],
)
def test_values_of_a_flag(flag: str, expected: tuple[str, ...]) -> None:
    assert option_values(WORDS, flag) == expected
    assert option_values((), flag) == ()


def test_the_engines_words_of_a_pinned_command() -> None:
    keyed = contained(plan(), secrets=(Secret("KEY", env="KEY"),))
    keyed = replace(keyed, command=(*COMMAND, "--api-key", "${secret:KEY}", "--json", '{"a": "b c"}'))
    assert pinned_arguments(pinned_text(keyed), keyed) == keyed.command
    moved = replace(keyed, image="vllm/vllm-openai:another@sha256:11")
    assert pinned_arguments(pinned_text(moved), keyed) == keyed.command


def test_what_is_no_command_has_no_words() -> None:
    assert [
        pinned_arguments(text, plan()) for text in (None, "", "docker run 'torn", "docker run other/image:1 --a")
    ] == [None] * 4
