"""`down` that is cut short: what it asked for is told, and the lane that ends after it has not died."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.free_port import free_port
from tests.support.program import Program


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    found = Program(tmp_path)
    yield found
    found.run("down", "--on", "sim", "--timeout", "0")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_that_was_not_waited_for(program: Program, number: signal.Signals) -> None:
    # At this speed the engine imports for 20 s, and hears no signal while it does.
    slow = ("--sim-speed", "1", "--set", f"engine.options.port={free_port()}")
    assert program.run("up", "v14", "--on", "sim", "--detach", *slow).code == 0
    down = program.start("down", "--on", "sim")
    assert down.stderr is not None
    assert down.stderr.readline() == "[simulated] stop dsv41-vllm, killing it after 30 s; it stays as it is\n"
    down.send_signal(number)
    _, err = down.communicate(timeout=30)
    assert (down.returncode, err.splitlines()) == (130, [
        "gb300serve: interrupted; dsv41-vllm was asked to end, and its end was not waited for",
        "  hint: see: gb300serve status --on sim; wait for its end: "
        "gb300serve down deepseek-v4.1-flash/v14 --on sim",
    ])  # fmt: skip
    entry = program.run("journal", "--json").document["entries"][-1]
    assert (entry["verb"], entry["result"], entry["to"]) == ("down", "interrupted", [])
    assert program.run("down", "--on", "sim", "--timeout", "0").code == 0
    (lane,) = program.run("status", "--json").document["lanes"]
    assert (lane["state"], lane["drift"]) == ("stopped", [])
