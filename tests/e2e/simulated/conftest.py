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
def program(tmp_path: Path) -> Iterator[Program]:
    program = Program(tmp_path)
    yield program
    program.run("down", "--on", "sim", "--timeout", "0")


@pytest.fixture
def forked(tmp_path: Path) -> Iterator[Forked]:
    """For tests of many commands that end at once."""
    program = Forked(tmp_path)
    yield program
    program.run("down", "--on", "sim", "--timeout", "0")
