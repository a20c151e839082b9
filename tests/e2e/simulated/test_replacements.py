"""v13 serves, v14 is to replace it and fails: in each phase of its boot, and at each step that leads there."""

import re

import pytest

from gb300serve.boot.phases import Phase
from tests.support.aftermath import Aftermath, SimulatedPlace, answers_at_last
from tests.support.forked import Forked

CAUSE = "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered"
FAST = ("--on", "sim", "--sim-speed", "800")
STORY = """\
<when>  up on the simulated Station: ready, requested by <whom>
    nothing → deepseek-v4.1-flash/v13+set (dsv41-vllm)
    deepseek-v4.1-flash/v13+set became READY as dsv41-vllm
    run <UTC>-deepseek-v4.1-flash-v13+set
<when>  up on the simulated Station: failed, requested by <whom>
    deepseek-v4.1-flash/v13+set (dsv41-vllm) → deepseek-v4.1-flash/v13+set (dsv41-vllm)
    {cause}
    reason: rehearsed
    run <UTC>-deepseek-v4.1-flash-v14+set
"""
# What differs from one run of the story to the next.
_VARIES = (
    (re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", re.MULTILINE), "<when>"),
    (re.compile(r"requested by \S+, process \d+"), "requested by <whom>"),
    (re.compile(r"\d{8}T\d{6}Z"), "<UTC>"),
    (re.compile(r"\(EngineCore pid=364\) ERROR \d\d-\d\d \d\d:\d\d:\d\d \[core\.py:\d+\] "), ""),
)


@pytest.fixture
def after(program: Forked, port: int) -> Aftermath:
    """v13 serves."""
    assert program.up_until_ready("v13", *on(port)).code == 130
    state = program.home / ".local" / "state" / "gb300serve"
    place = SimulatedPlace(state)
    return Aftermath(program, place, state, place.containers())


def on(port: int) -> tuple[str, ...]:
    return (*FAST, "--set", f"engine.options.port={port}")


def story(program: Forked) -> str:
    """All that `journal` prints, without what varies."""
    told = program.run("journal").out
    for pattern, name in _VARIES:
        told = pattern.sub(name, told)
    return told


def serves_again(after: Aftermath, program: Forked, port: int) -> None:
    """v13's own container boots until it answers, and `status` and `up` say so."""
    (v13,) = [each for each in after.judge() if each.live]
    assert (v13.id, v13.name, v13.release) == (after.kept[0].id, "dsv41-vllm", "v13+set")
    url = f"http://127.0.0.1:{port}"
    assert answers_at_last(url)
    after.judge_status()
    again = program.run("up", "v13", *on(port))
    assert "v13 already serves: dsv41-vllm" in again.err
    after.judge_up(again, "v13+set", url)


@pytest.mark.parametrize("phase", Phase)
def test_in_each_phase(after: Aftermath, program: Forked, port: int, phase: Phase) -> None:
    words = ("--replace", "--reason", "rehearsed", "--sim-fault", f"dies-in-{phase}")
    failed = program.run("up", "v14", *on(port), *words)
    assert failed.code == 8, failed.err
    (said,) = [line for line in failed.err.splitlines() if line.startswith("gb300serve: ")]
    assert said.endswith(CAUSE)
    assert f"in phase {phase}, " in failed.err
    assert "dsv41-vllm was put back and boots again" in failed.err
    serves_again(after, program, port)

    (kept,) = [each for each in after.place.containers() if each.release == "v14+set"]
    assert re.fullmatch(r"dsv41-vllm-failed-\d{8}T\d{6}Z", kept.name)
    assert b"uncorrectable ECC error" in kept.logs[0]
    _, run = after.runs()
    assert (run["release"], run["state"], run["reason"]) == ("v14+set", "failed", "rehearsed")
    assert run["exit"] == {"tool": 8, "container": 1, "oom_killed": False, "kept_as": kept.name}
    assert (run["verdict"]["diagnosis"]["state"], run["verdict"]["diagnosis"]["phase"]) == ("failed", phase)
    assert run["container"]["id"] == kept.id
    log = (after.state / "runs" / run["run"] / "log.txt").read_text(encoding="utf-8")
    assert "uncorrectable ECC error" in log
    assert story(program) == STORY.format(cause=CAUSE)


# What is made first in each step.
STEPS = {
    "rename": ("os.rename", "/containers/{v13}/.container.json."),
    "create": ("os.mkdir", "/containers/.new-"),
    "start": ("open", "/shim.log"),
}


@pytest.mark.parametrize("step", STEPS)
def test_at_each_step(after: Aftermath, program: Forked, port: int, step: str) -> None:
    (v13,) = after.kept
    change = tuple(word.format(v13=v13.id) for word in STEPS[step])
    failed = program.failing_at(change, "up", "v14", *on(port), "--replace", "--reason", "rehearsed")
    assert failed.code == 7, failed.err
    cause = f"the simulated Station cannot write {after.state}/sim: No space left on device"
    assert f"gb300serve: {cause}" in failed.err
    assert "Traceback" not in failed.err
    serves_again(after, program, port)
    assert [each.release for each in after.place.containers()] == ["v13+set"], "what never ran is not kept"
    _, run = after.runs()
    assert (run["release"], run["state"], run["exit"]) == ("v14+set", "failed", {"tool": 7})
    assert cause in run["verdict"]["message"]
    assert story(program) == STORY.format(cause=cause)
