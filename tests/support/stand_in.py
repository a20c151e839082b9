"""The stand-in as a process of its own."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SRC = Path(__file__).resolve().parents[2] / "src"
PATIENCE = 30.0


def environment(**said: str) -> dict[str, str]:
    """What the stand-in is told; nothing of this process's own comes along."""
    return {"PATH": os.defpath, "PYTHONPATH": str(SRC), **{f"GB300SERVE_SIM_{key}": text for key, text in said.items()}}


def start(*words: str, **said: str) -> subprocess.Popen[bytes]:
    """Started, both streams in pipes."""
    return subprocess.Popen(
        (sys.executable, "-m", "gb300serve.simulator.engine", *words),
        env=environment(**said),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """Exit code and both streams."""
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out.decode(), err.decode()


@contextmanager
def serving(port: int, *words: str, **said: str) -> Iterator[subprocess.Popen[bytes]]:
    """Started and healthy; killed at the end if it still lives."""
    process = start(*words, "--port", str(port), **said)
    try:
        until = time.monotonic() + PATIENCE
        while not healthy(port):
            assert process.poll() is None, finish(process)
            assert time.monotonic() < until
            time.sleep(0.02)
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=PATIENCE)


def healthy(port: int) -> bool:
    """Does a server on the port say that it is well?"""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False
