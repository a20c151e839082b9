"""What the files of a checkpoint say of themselves: config.json and the headers of its tensors; no tensor is read."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gb300serve.core.errors import CommandLineError
from gb300serve.fit.checkpoint import Tensor

INDEX = "model.safetensors.index.json"
# The format's own limit; a header is a few hundred bytes a tensor.
LARGEST_HEADER = 100_000_000


class CheckpointUnreadableError(CommandLineError):
    """The directory is no checkpoint that can be planned for."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"--checkpoint {path}: {reason}",
            hint=f"a checkpoint has config.json, *.safetensors and, with several of these, {INDEX}",
        )


def read_config(directory: Path) -> Mapping[str, Any]:
    """config.json; raises CheckpointUnreadableError."""
    return _json(directory / "config.json")


def read_tensors(directory: Path) -> Iterator[Tensor]:
    """Every tensor of every file that the index names, or of every file without one."""
    index = directory / INDEX
    if index.is_file():
        files = sorted({str(name) for name in _json(index).get("weight_map", {}).values()})
    else:
        files = sorted(path.name for path in directory.glob("*.safetensors"))
    absent = [name for name in files if not (directory / name).is_file()]
    if absent or not files:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        raise CheckpointUnreadableError(directory, f"{absent[0]}{more} absent" if absent else "no *.safetensors in it")
    for name in files:
        yield from _tensors(directory / name)


def _tensors(path: Path) -> Iterator[Tensor]:
    try:
        for name, entry in _header(path).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                yield Tensor(name, tuple(map(int, entry["shape"])), int(end) - int(begin))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CheckpointUnreadableError(path, "not a safetensors header") from error


def _header(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            if size > LARGEST_HEADER:
                raise CheckpointUnreadableError(path, f"a header of {size} bytes")
            found: dict[str, Any] = json.loads(file.read(size))
    except OSError as error:
        raise CheckpointUnreadableError(path, error.strerror or str(error)) from error
    return found


def _json(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CheckpointUnreadableError(path, error.strerror or str(error)) from error
    except ValueError as error:
        raise CheckpointUnreadableError(path, "not JSON") from error
    if not isinstance(found, dict):
        raise CheckpointUnreadableError(path, "not a JSON object")
    return found
