"""A cache directory in memory."""

import json
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from gb300serve.autotune.sets import CacheDeniedError

CACHE = Path("/cache")
FLASHINFER = "0.6.18"


def content(configs: int, flashinfer: str = FLASHINFER, **metadata: str) -> bytes:
    """A set of so many kernels."""
    kernels = {f"('moe', {index})": ["MoERunner", index] for index in range(configs)}
    return json.dumps({"_metadata": {"flashinfer_version": flashinfer, **metadata}, **kernels}).encode()


@dataclass
class FakeCacheFiles:
    """Files by path; those in `denied` belong to another user."""

    files: dict[Path, bytes] = field(default_factory=dict)
    denied: set[Path] = field(default_factory=set)

    def add(self, path: PurePosixPath | str, data: bytes) -> Path:
        self.files[CACHE / path] = data
        return CACHE / path

    def names(self, directory: Path) -> tuple[str, ...]:
        inside = [path.relative_to(directory).parts[0] for path in self.files if directory in path.parents]
        return tuple(sorted(set(inside)))

    def written_at(self, path: Path) -> float | None:
        return 1_796_000_000.0 if path in self.files else None

    def read(self, path: Path) -> bytes:
        if path in self.denied:
            raise CacheDeniedError(path, "read", "sudo x")
        return self.files[path]

    def write(self, path: Path, data: bytes) -> None:
        if path in self.denied:
            raise CacheDeniedError(path, "written", "sudo x")
        self.files[path] = data

    def back_up(self, path: Path, backup: Path) -> None:
        assert backup not in self.files
        self.files[backup] = self.files[path]
