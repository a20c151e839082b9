"""gb300serve as a program of its own, with a home, a state directory and recipes that belong to one test."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The variables that a test must not inherit: they would lead it to the user's own recipes, sites and Engines.
LEADING = re.compile(r"GB300SERVE_(?!TEST_)|DOCKER_|XDG_")

_STARTED: list[subprocess.Popen[str]] = []


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """End what a failed test left running: it would hold a mount or a port that a fixture is about to take away."""
    while _STARTED:
        process = _STARTED.pop()
        if process.poll() is None:
            process.kill()
            process.communicate()


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


@dataclass
class Program:
    """Runs commands with everything it writes below `home`."""

    home: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        own = {"HOME": str(self.home), "PYTHONPATH": str(ROOT / "src"), "NO_COLOR": "1", "PYTHONFAULTHANDLER": "1"}
        kept = {name: value for name, value in os.environ.items() if not LEADING.match(name)}
        return kept | own | self.variables

    def run(self, *words: str, timeout: float = 120.0) -> Result:
        done = subprocess.run(
            self.command(*words), env=self.environment, cwd=self.home, capture_output=True, text=True,
            timeout=timeout, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return Result(done.returncode, done.stdout, done.stderr)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "gb300serve", *words]

    def start(self, *words: str, group: bool = False) -> subprocess.Popen[str]:
        """`group`: in a process group of its own, which a terminal's Ctrl-C would reach as one."""
        process = subprocess.Popen(
            self.command(*words), env=self.environment, cwd=self.home, text=True, start_new_session=group,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        _STARTED.append(process)
        return process

    def up_until_ready(self, *words: str, timeout: float = 120.0) -> Result:
        """`up`, then Ctrl-C as soon as it says that it serves; fails when it ends before."""
        process = self.start("up", *words)
        assert process.stderr is not None
        said = []
        deadline = time.monotonic() + timeout
        for line in process.stderr:
            said.append(line)
            if line.startswith("serving at ") or time.monotonic() > deadline:
                process.send_signal(signal.SIGINT)
                break
        out, err = wait_for_end(process, 30)
        return Result(process.returncode, out, "".join(said) + err)


def wait_for_end(process: subprocess.Popen[str], timeout: float) -> tuple[str, str]:
    """The rest of its outputs; where it does not end in time, the test fails with what each of its threads does."""
    try:
        return process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        pytest.fail(f"it did not end within {timeout:g} s:\n{process.communicate()[1]}")
