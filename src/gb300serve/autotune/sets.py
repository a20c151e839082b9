"""The sets of a cache directory: what lies there, for whom, how many kernels, when it was last used."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from gb300serve.autotune.content import Content, NotASetError, flashinfer_of, read_content
from gb300serve.autotune.expect import same_identity
from gb300serve.autotune.layout import FILES, ROOT
from gb300serve.autotune.ports import CacheDeniedError, CacheFiles


@dataclass(frozen=True, slots=True)
class TuningSet:
    """One file. `path` is below the cache directory; `used_at` is when an engine last wrote it, which each boot does.

    `content` is None where it cannot be read: `problem` says why.
    """

    flashinfer: str
    arch: str
    identity: str
    file: str
    used_at: float | None = None
    content: Content | None = None
    problem: str | None = None

    @property
    def path(self) -> PurePosixPath:
        return PurePosixPath(ROOT) / self.flashinfer / self.arch / self.identity / self.file

    @property
    def foreign(self) -> str | None:
        """Why FlashInfer will ignore it: it was measured with another version than its directory names."""
        measured = flashinfer_of(self.content.metadata) if self.content else None
        if measured is None or measured == self.flashinfer:
            return None
        return f"its _metadata says FlashInfer {measured}, its directory {self.flashinfer}: it is ignored at each boot"

    def as_json(self) -> dict[str, Any]:
        """One object of `sets` in `gb300serve.cache/1`."""
        return {
            "path": str(self.path),
            "flashinfer": self.flashinfer,
            "arch": self.arch,
            "identity": self.identity,
            "file": self.file,
            "configs": self.content.configs if self.content else None,
            "sha256": self.content.sha256 if self.content else None,
            "metadata": dict(self.content.metadata) if self.content else None,
            "used_at": self.used_at,
            "problem": self.problem or self.foreign,
        }


def list_sets(files: CacheFiles, directory: Path) -> tuple[TuningSet, ...]:
    """All of them, by version, architecture and identity. A set that cannot be read is listed with the reason."""
    return tuple(_sets(files, directory))


def _sets(files: CacheFiles, directory: Path) -> Iterator[TuningSet]:
    root = directory / ROOT
    for version in files.names(root):
        for arch in files.names(root / version):
            for identity in files.names(root / version / arch):
                for name in files.names(root / version / arch / identity):
                    if name in FILES:
                        yield _read(files, directory, TuningSet(version, arch, identity, name))


def _read(files: CacheFiles, directory: Path, found: TuningSet) -> TuningSet:
    path = directory / found.path
    content, problem = None, None
    try:
        content = read_content(files.read(path))
    except CacheDeniedError:
        problem = f"it belongs to another user: sudo sha256sum {path}"
    except NotASetError as error:
        problem = str(error)
    used_at = files.written_at(path)
    return TuningSet(found.flashinfer, found.arch, found.identity, found.file, used_at, content, problem)


def of_identity(sets: Iterable[TuningSet], identity: str) -> tuple[TuningSet, ...]:
    """Those whose directory is named so, or begins so."""
    return tuple(one for one in sets if same_identity(one.identity, identity))
