"""Logs of SGLang 0.5.23 on a CPU, one start each, whole: the wheel from PyPI beside a CPU torch, its kernels left out.

Only paths were changed to those of a container.
"""

from pathlib import Path

import pytest

from gb300serve.boot.machine import BootMachine
from gb300serve.engines.logs import boot_machine
from tests.boot.test_real_logs import Said

LOGS = Path(__file__).parent / "logs_sglang"

SAID = {
    "bad-choice": Said(
        "failed", "starting", "kv-dtype-unsupported", 478, {"argument": "--kv-cache-dtype", "value": "fp9"}
    ),
    "bad-json": Said("failed", "starting", "invalid-json", 42, {"error": "Expecting value: line 1 column 6 (char 5)"}),
    "clean-stop": Said("stopped", "serving", None, 0, {}),
    "config-cut": Said("failed", "starting", "model-path-not-visible", 16, {"path": "/model"}),
    "context": Said("failed", "starting", "context-exceeds-model", 35, {"asked": 1048576, "limit": 4096}),
    "path-missing": Said("failed", "starting", "model-path-not-visible", 16, {"path": "/model"}),
    "port-in-use": Said("failed", "serving", "port-in-use", 61, {"address": "127.0.0.1", "port": 31777}),
    "quoting-lost": Said("failed", "starting", "invalid-json", 43, {}),
    "scheduler-killed": Said("failed", "serving", "killed", 67, {"process": "scheduler_0", "signal": 9}),
    "tool-parser": Said("failed", "starting", "unknown-parser", 478, {"parser": "glm99"}),
    "truncated": Said("failed", "loading-weights", "model-files-incomplete", 105, {}),
    "unknown-argument": Said("failed", "starting", "unknown-argument", 478, {"arguments": "--no-such-option 3"}),
}


def lines_of(name: str) -> list[str]:
    """As `diagnose` reads a file: only line feeds end a line."""
    with (LOGS / f"{name}.log").open(encoding="utf-8", newline="\n") as log:
        return list(log)


def fed(lines: list[str]) -> BootMachine:
    machine = boot_machine()
    for line in lines:
        machine.feed(line)
    return machine


@pytest.mark.parametrize("name", SAID)
def test_what_the_real_engine_said(name: str) -> None:
    machine, said = fed(lines_of(name)), SAID[name]
    found = machine.result()
    line = found.evidence[0].line if found.evidence else 0
    values = {key: value for key, value in found.values.items() if key in said.values}
    assert Said(found.state, found.phase, found.reason, line, values) == said
    assert (found.boots, machine.engine) == (1, "sglang")
    assert found.advice or found.state != "failed"


def test_every_log_is_judged() -> None:
    assert {path.stem for path in LOGS.iterdir()} == SAID.keys()


def test_it_was_ready_before_it_was_stopped() -> None:
    lines = lines_of("clean-stop")
    ready = next(index for index, line in enumerate(lines) if "fired up" in line)
    found = fed(lines[: ready + 1]).result()
    assert (found.state, found.reason) == ("ready", None)
    assert [phase.value for phase, _ in found.phases] == [
        "starting",
        "loading-weights",
        "profiling",
        "sizing-kv-cache",
        "serving",
    ]
    assert fed(lines[:ready]).result().state == "booting"
