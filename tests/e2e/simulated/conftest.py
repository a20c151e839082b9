"""A home and a port of each test's own, on the simulated Station."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.forked import Forked
from tests.support.free_port import free_port
from tests.support.program import Program


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Forked]:
    """Its commands are forks, which take a tenth of the CPU time of fresh processes; `start` makes a fresh one."""
    program = Forked(tmp_path)
    yield program
    program.run("down", "--on", "sim", "--timeout", "0")


@pytest.fixture
def fresh_program(program: Forked) -> Program:
    """The same, each command a fresh process."""
    return Program(program.home)
