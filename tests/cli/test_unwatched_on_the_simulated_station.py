"""A lane whose boot nobody watched to its end, and that served: there is a way back to it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.free_port import free_port
from tests.support.program import Program

FAST = ("--on", "sim", "--sim-speed", "2000")


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    found = Program(tmp_path)
    yield found
    found.run("down", "--on", "sim", "--timeout", "0")


def test_a_detached_launch_that_served_can_be_returned_to(program: Program) -> None:
    port = ("--set", f"engine.options.port={free_port()}")
    assert program.run("up", "v13", *FAST, *port, "--detach").code == 0
    until = time.monotonic() + 60
    while program.run("status", "--json").document["lanes"][0]["state"] != "ready":
        assert time.monotonic() < until
    assert "READY" in program.up_until_ready("v14", *FAST, *port, "--replace").err
    back = program.run("rollback")
    assert (back.code, "back to deepseek-v4.1-flash/v13+set" in back.err) == (0, True), back.err
    (lane, kept) = program.run("status", "--json").document["lanes"]
    assert (lane["release"], lane["state"], kept["release"], kept["state"]) == (
        "v13+set",
        "ready",
        "v14+set",
        "stopped",
    )


def test_a_detached_launch_that_never_served_is_no_way_back(program: Program) -> None:
    port = ("--set", f"engine.options.port={free_port()}")
    assert program.run("up", "v13", "--on", "sim", "--sim-speed", "1", *port, "--detach").code == 0
    assert "READY" in program.up_until_ready("v14", *FAST, *port, "--replace").err
    back = program.run("rollback")
    assert (back.code, "there is nothing to roll back to" in back.err) == (6, True), back.err
