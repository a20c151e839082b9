"""A JSON document kept in a file: read whole, written so that a reader never sees half of it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from gb300serve.core.errors import MachineError


class StateUnwritableError(MachineError):
    """The file cannot be written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"cannot write {path}: {reason}", hint="`state` in the site file names another directory")


def read_document(path: Path) -> dict[str, Any]:
    """The object in the file; empty where there is no file, or another thing in it."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Beside the file first, then in its place; the directory is made for the user alone."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            file.write(json.dumps(document, indent=2, ensure_ascii=False, default=str) + "\n")
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(path)
    except OSError as error:
        raise StateUnwritableError(path, error.strerror or str(error)) from error
