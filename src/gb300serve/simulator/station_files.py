"""Files of a simulated container, read and written so that a kill at any moment leaves a whole one."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CONTAINER, STATE, LOG, LOCK = "container.json", "state.json", "log.jsonl", "lock"


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a file; None when there is no file, or no whole one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Beside the file first, then in its place; readable by the user alone, as secrets are in it."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False)
    fresh.replace(path)


def is_locked(path: Path) -> bool:
    """Does anybody hold the exclusive lock?"""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


@contextmanager
def exclusively(path: Path) -> Iterator[None]:
    """Hold the lock of a file, waiting for whoever has it; a process that dies lets go."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
