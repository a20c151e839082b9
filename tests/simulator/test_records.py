import fcntl
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gb300serve.lifecycle.backend import LogLine
from gb300serve.plan.model import ContainerPlan, Mount, Plan, Secret
from gb300serve.simulator.engine.settings import environment_checkpoint, read_environment
from gb300serve.simulator.records import (
    State,
    build_record,
    describe_container,
    describe_image,
    follow_log,
    hold_lock,
    is_locked,
    parse_state,
    poll_interval,
    read_json,
    read_log,
    simulation_variables,
    write_json,
)


def test_what_is_not_a_whole_object_is_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert read_json(path) is None
    assert read_json(path / "below-a-file") is None
    for text in ('{"a": 1', "[]", "", "\x00"):
        path.write_text(text)
        assert read_json(path) is None


def test_files_are_replaced_and_private(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for content in ({"a": 1}, {"b": "é"}):
        write_json(path, content)
        assert read_json(path) == content
    assert [found.name for found in tmp_path.iterdir()] == ["a.json"]
    assert oct(path.stat().st_mode)[-3:] == "600"


def test_locks_are_seen_and_let_go(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_locked(path)
    with hold_lock(path):
        assert is_locked(path)
    assert not is_locked(path)
    with path.open() as shared:
        fcntl.flock(shared, fcntl.LOCK_SH)
        assert not is_locked(path)


class Steps:
    """A clock whose sleeps do what the test says, one after the other."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._steps = list(steps)
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds
        if self._steps:
            self._steps.pop(0)()

    @property
    def done(self) -> bool:
        return not self._steps


def record(text: str, at: float = 1.0) -> str:
    return json.dumps({"at": at, "stream": "stdout", "text": text}) + "\n"


def append(path: Path, text: str) -> Callable[[], object]:
    def write() -> None:
        with path.open("a") as file:
            file.write(text)

    return write


def test_half_a_record_is_not_read_yet(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert list(read_log(path)) == []
    path.write_text(record("one") + record("two")[:-3])
    assert list(read_log(path)) == [LogLine("one", 1.0, "stdout")]


def test_it_is_followed_from_before_it_exists_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    second = record("two", 2.0)
    clock = Steps(
        lambda: None,
        append(path, record("one")),
        append(path, second[:9]),
        append(path, second[9:]),
        lambda: None,
        append(path, record("three", 3.0)),
    )
    found = [line.text for line in follow_log(path, lambda: clock.done, clock, 60.0) if line is not None]
    assert found == ["one", "two", "three"]


def test_silence_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(record("one"))
    clock = Steps(*[lambda: None] * 10)
    found = list(follow_log(path, lambda: clock.done, clock, 0.1))
    assert [line and line.text for line in found] == ["one", None, None, None]


def test_a_container_that_ended_without_a_log(tmp_path: Path) -> None:
    assert list(follow_log(tmp_path / "log", lambda: True, Steps(), 1.0)) == []


def test_a_fast_clock_is_looked_at_more_often() -> None:
    assert [poll_interval(speed) for speed in (1.0, 100.0, 200.0, 800.0)] == [0.2, 0.1, 0.05, 0.05]


PLAN = Plan(
    recipe="deepseek-v4.1-flash/v14",
    lane="deepseek-v4.1-flash",
    release="v14",
    engine="vllm",
    engine_version=None,
    image="vllm/vllm-openai:tag@sha256:00d5",
    image_id=None,
    container=ContainerPlan(
        name="dsv41-vllm",
        gpus="all",
        labels={"a": "b", "gb300serve.lane": "x"},
        mounts=(Mount("/models/x", "/model"),),
        ports=("8021:8000",),
        env={"A": "1"},
        secrets=(Secret("KEY", env="KEY"), Secret("UNUSED", env="U")),
        stop_timeout=30,
    ),
    command=("/model", "--api-key", "${secret:KEY}", "--x=${secret:OTHER}"),
    served_names=("m",),
    port=8021,
    model_path="/models/DeepSeek-V4.1-Flash-df42",
)


def test_a_plan_becomes_a_record() -> None:
    record = build_record(PLAN, {"gb300serve.lane": "l"}, {"KEY": "s3cret"}, "sha256:aa", {"GB300SERVE_SIM_MODEL": ""})
    assert record == {
        "name": "dsv41-vllm",
        "image": "vllm/vllm-openai:tag@sha256:00d5",
        "image_id": "sha256:aa",
        "labels": {"a": "b", "gb300serve.lane": "l"},
        "command": ["/model", "--api-key", "s3cret", "--x=${secret:OTHER}"],
        "env": {"A": "1", "KEY": "s3cret"},
        "restart_policy": "no",
        "host_network": False,
        "gpus": "all",
        "published": [8021],
        "stop_timeout": 30,
        "options": {
            "network": "bridge",
            "ipc": "private",
            **dict.fromkeys(("cap_add", "privileged", "group_add", "cpuset_cpus", "add_host"), "nothing"),
            "mounts./model": "/models/x",
        },
        "mounts": {"/model": "/models/x"},
        "pinned": {},
        "simulation": {"GB300SERVE_SIM_MODEL": ""},
    }


def test_the_engine_gets_what_it_cannot_know() -> None:
    assert simulation_variables(PLAN, "/state/cache", "0.1.dev20904+g179dd0fa9") == {
        "GB300SERVE_SIM_ENGINE": "vllm",
        "GB300SERVE_SIM_VERSION": "0.1.dev20904+g179dd0fa9",
        "GB300SERVE_SIM_MODEL": "deepseek-ai/DeepSeek-V4.1-Flash",
        "GB300SERVE_SIM_MOUNTS": json.dumps(["/model"]),
        "GB300SERVE_SIM_CACHE": "/state/cache",
        "GB300SERVE_SIM_LISTEN": "8021",
    }


def test_images_follow_from_their_references() -> None:
    assert describe_image("a/b:1").id == describe_image("a/b:1").id != describe_image("a/b:2").id
    digests = {"a/b:1@sha256:ff": ("a/b@sha256:ff",), "h:5000/a@sha256:ff": ("h:5000/a@sha256:ff",), "h:5000/a:1": ()}
    assert {reference: describe_image(reference).digests for reference in digests} == digests


def test_states() -> None:
    record = {**build_record(PLAN, {}, {}, "", {}), "id": "f" * 64, "created_at": 5.0}
    states = {
        "created": parse_state(None, locked=False, last_seen=None),
        "starting": parse_state({"start": 1, "speed": 200.0}, locked=True, last_seen=None),
        "running": parse_state({"start": 1, "pid": 9, "started_at": 6.0}, locked=True, last_seen=7.0),
        "ending": parse_state(
            {"start": 1, "started_at": 6.0, "exit_code": 1, "finished_at": 8.0}, locked=True, last_seen=8.0
        ),
        "exited": parse_state(
            {"start": 1, "started_at": 6.0, "exit_code": 0, "finished_at": 8.0}, locked=False, last_seen=8.0
        ),
        "lost": parse_state({"start": 1, "pid": 9, "started_at": 6.0}, locked=False, last_seen=7.0),
    }
    found = {name: describe_container(record, state) for name, state in states.items()}
    assert {
        name: (container.state, container.exit_code, container.finished_at) for name, container in found.items()
    } == {
        "created": ("created", None, None),
        "starting": ("running", None, None),
        "running": ("running", None, None),
        "ending": ("exited", 1, 8.0),
        "exited": ("exited", 0, 8.0),
        "lost": ("exited", 255, 7.0),
    }
    assert [State(locked=locked).ever_started for locked in (False, True)] == [False, True]


def test_without_mounts_the_model_is_in_the_image() -> None:
    bare = replace(PLAN, container=replace(PLAN.container, mounts=()), model_path="/models/unknown")
    simulation = simulation_variables(bare, "", "1")
    assert "GB300SERVE_SIM_MOUNTS" not in simulation
    assert simulation["GB300SERVE_SIM_MODEL"] == ""


def test_the_memory_of_the_recipe_reaches_the_engine() -> None:
    residency = {"hbm_expert_gib": 1.5, "grace_expert_gib": 2.0, "basis": "b"}
    memory = {"kv_cache": {"bytes_per_token": 1024}, "residency": residency}
    variables = simulation_variables(PLAN, "/c", "1", memory)
    assert read_environment(variables).memory == memory
    checkpoint = environment_checkpoint(read_environment(variables))
    assert checkpoint.kv_cache.bytes_per_token == 1024
    assert checkpoint.residency is not None
    assert checkpoint.residency.grace_expert_gib == 2.0
