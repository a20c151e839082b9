"""gb300serve's commands as processes that can be killed at any moment: `Program`, with forks of one that is loaded."""

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest

from tests.support.program import ROOT, Program, Result

_POLL = 0.005


class ForkServer:
    """One for each test process. It ends with it: its requests end then."""

    def __init__(self) -> None:
        home = tempfile.mkdtemp(prefix="gb300serve-forks-")
        paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.fork_server"], cwd=home,
            # Unbuffered: `select` does not see a line that a buffer holds already.
            bufsize=0,
            env=Program(Path(home)).environment | {"PYTHONPATH": paths},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def begin(self, request: Mapping[str, object]) -> int:
        """The id of the process that carries it out. One at a time."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        return self._number()

    def ended(self, timeout: float) -> int | None:
        """Waits for it; its exit code, negative where a signal ended it, None where it has not ended in time."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], timeout)
        return self._number() if ready else None

    def _number(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


@lru_cache(maxsize=1)
def fork_server() -> ForkServer:
    return ForkServer()


@dataclass
class Forked(Program):
    """One command at a time."""

    def run(self, *words: str, timeout: float = 120.0) -> Result:
        process = self._begin(words)
        return self._result(process, timeout)

    def up_until_ready(self, *words: str, timeout: float = 120.0) -> Result:
        """`up`, then Ctrl-C as soon as it says that it serves, or when it has said so for too long."""
        process = self._begin(("up", *words))
        self.wait_for("serving at ", process, timeout)
        _signal(process, signal.SIGINT)
        return self._result(process)

    def killed_after(self, seconds: float, *words: str) -> Result:
        """Killed so many seconds after its start; as it ended where it had ended before."""
        process = self._begin(words)
        until = time.monotonic() + seconds
        while time.monotonic() < until and _lives(process):
            time.sleep(min(_POLL, max(0.0, until - time.monotonic())))
        _signal(process, signal.SIGKILL)
        return self._result(process)

    def killed_at(self, change: int, *words: str) -> Result:
        """Killed before the change of that number (from 1); Ctrl-C where it serves without having come so far."""
        process = self._begin(words, dies_at=change)
        self.wait_for("serving at ", process)
        _signal(process, signal.SIGINT)
        return self._result(process)

    def failing_at(self, change: tuple[str, ...], *words: str) -> Result:
        """With a disk that is full for the first change that is told with all these words."""
        process = self._begin(words, fails_at=change)
        ended = self._result(process)
        assert any(all(word in line for word in change) for line in self.trail()), (change, self.trail())
        return ended

    def changes(self, *words: str) -> tuple[list[str], float]:
        """What the command changes until it serves or ends, and after how many seconds that is."""
        began = time.monotonic()
        process = self._begin(words, dies_at=0)
        self.wait_for("serving at ", process)
        span, told = time.monotonic() - began, self.trail()
        _signal(process, signal.SIGINT)
        ended = self._result(process)
        assert ended.code in {0, 130}, ended.err
        return told, span

    def trail(self) -> list[str]:
        """What the last command that left one was about to change."""
        return self._trail.read_text(encoding="utf-8").splitlines() if self._trail.exists() else []

    def wait_for(self, said: str, process: int, timeout: float = 120.0) -> None:
        """Until the command has said it on standard error, or has ended."""
        until = time.monotonic() + timeout
        while time.monotonic() < until and _lives(process) and said not in self._err.read_text(encoding="utf-8"):
            time.sleep(_POLL)

    @property
    def _out(self) -> Path:
        return self.home / "out"

    @property
    def _err(self) -> Path:
        return self.home / "err"

    @property
    def _trail(self) -> Path:
        return self.home / "trail"

    def _begin(self, words: tuple[str, ...], dies_at: int | None = None, fails_at: tuple[str, ...] = ()) -> int:
        for path in (self._out, self._err):
            path.write_text("")
        hindered = {"trail": str(self._trail), "dies_at": dies_at or None, "fails_at": fails_at}
        told = hindered if fails_at or dies_at is not None else {}
        request = {"words": words, "env": self.environment, "cwd": str(self.home), **told}
        return fork_server().begin(request | {"out": str(self._out), "err": str(self._err)})

    def _result(self, process: int, timeout: float = 30.0) -> Result:
        code = fork_server().ended(timeout)
        if code is None:
            _signal(process, signal.SIGKILL)
            fork_server().ended(timeout)
            pytest.fail(f"it did not end within {timeout:g} s:\n{self._err.read_text(encoding='utf-8')}")
        return Result(code, self._out.read_text(encoding="utf-8"), self._err.read_text(encoding="utf-8"))


def _lives(process: int) -> bool:
    """Its server reaps it as soon as it has ended."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _signal(process: int, number: int) -> None:
    if _lives(process):
        os.kill(process, number)
