"""Putting a set in its place before a launch. What was there is kept beside it, whatever it was."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gb300serve.autotune.content import Content, read_content
from gb300serve.autotune.ports import CacheFiles


@dataclass(frozen=True, slots=True)
class Placed:
    """`aside` is where the file before it lies now; `changed` is False where the right bytes were there already."""

    path: Path
    content: Content
    aside: Path | None = None
    changed: bool = True


def put(files: CacheFiles, directory: Path, path: PurePosixPath, data: bytes, stamp: str) -> Placed:
    """Write `data` as the set at `path` below the cache directory and read it back.

    `stamp` (a UTC time) marks the copy of what was there. Raises NotASetError before anything is changed.
    """
    content, target = read_content(data), directory / path
    if files.written_at(target) is None:
        files.write(target, data)
        return Placed(target, read_content(files.read(target)))
    if files.read(target) == data:
        return Placed(target, content, changed=False)
    aside = target.with_name(f"{target.name}.aside-{stamp}")
    files.keep_aside(target, aside)
    files.write(target, data)
    return Placed(target, read_content(files.read(target)), aside)
