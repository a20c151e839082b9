"""The stand-in as a process of its own."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

SRC = Path(__file__).resolve().parents[2] / "src"
PATIENCE = 30.0


def environment(**said: str) -> dict[str, str]:
    """What the stand-in is told; nothing of this process's own comes along."""
    return {"PATH": os.defpath, "PYTHONPATH": str(SRC), **{f"GB300SERVE_SIM_{key}": text for key, text in said.items()}}


def start(*words: str, **said: str) -> subprocess.Popen[bytes]:
    """Started, both streams in pipes."""
    return _started(words, said, subprocess.PIPE, subprocess.PIPE)


def _started(
    words: tuple[str, ...], said: Mapping[str, str], out: IO[bytes] | int, err: IO[bytes] | int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        (sys.executable, "-m", "gb300serve.simulator.engine", *words),
        env=environment(**said),
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=err,
    )


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Exit code and both streams."""
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out.decode(), err.decode()


@dataclass(frozen=True, slots=True)
class Serving:
    """One that serves. Its streams are files: before it crosses from one pipe to the other it waits for the reader."""

    process: subprocess.Popen[bytes]
    out: IO[bytes]
    err: IO[bytes]

    def terminated(self) -> tuple[int, str, str]:
        """Its exit code and both streams after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self) -> tuple[int, str, str]:
        code = self.process.wait(timeout=PATIENCE)
        for stream in (self.out, self.err):
            stream.seek(0)
        return code, self.out.read().decode(), self.err.read().decode()


@contextmanager
def serving(port: int, *words: str, **said: str) -> Iterator[Serving]:
    """Started and healthy; killed at the end if it still lives."""
    with TemporaryFile() as out, TemporaryFile() as err:
        process = _started((*words, "--port", str(port)), said, out, err)
        served = Serving(process, out, err)
        try:
            until = time.monotonic() + PATIENCE
            while not healthy(port):
                assert process.poll() is None, served.ended()
                assert time.monotonic() < until
                time.sleep(0.02)
            yield served
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait(timeout=PATIENCE)


def healthy(port: int) -> bool:
    """Does a server on the port say that it is well?"""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False
