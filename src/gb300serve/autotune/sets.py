"""The sets of a cache directory: what lies there, for whom, how many kernels, when it was last used."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from gb300serve.core.errors import MachineError
from gb300serve.engines.tables import version_key

_METADATA = "_metadata"


class InvalidSetError(ValueError):
    """The bytes are no tuning set; the text says why."""


@dataclass(frozen=True, slots=True)
class SetContent:
    """`configs` is the number of kernels, `metadata` the environment that FlashInfer compares before it loads."""

    configs: int
    sha256: str
    metadata: Mapping[str, str]


def parse_set(data: bytes) -> SetContent:
    """Raises NotASetError."""
    try:
        found = json.loads(data)
    except ValueError as error:
        raise InvalidSetError(f"not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidSetError("not an object")
    metadata = found.get(_METADATA)
    return SetContent(
        sum(not name.startswith("_") for name in found),
        hashlib.sha256(data).hexdigest(),
        {str(key): _text(value) for key, value in metadata.items()} if isinstance(metadata, dict) else {},
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def metadata_differences(one: Mapping[str, str], other: Mapping[str, str]) -> tuple[str, ...]:
    """What two environments have otherwise, as `cublas_version: 13.0 against 13.1`; unknown entries say nothing."""
    common = [name for name in one if name in other]
    return tuple(f"{name}: {one[name]} against {other[name]}" for name in common if one[name] != other[name])


def flashinfer_of(metadata: Mapping[str, str]) -> str | None:
    """The version of FlashInfer that the set was measured with, under whichever of its names."""
    return next((metadata[name] for name in ("flashinfer_version", "flashinfer") if name in metadata), None)


class CacheDeniedError(MachineError):
    """The file belongs to another user (the engine's sets are root's, mode 0600)."""

    def __init__(self, path: Path, what: str, command: str) -> None:
        super().__init__(f"{path} cannot be {what}: it belongs to another user", hint=f"run it as root: {command}")
        self.path = path


class CacheUnusableError(MachineError):
    """Something else is wrong with a file of the cache."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}", hint="see `gb300serve cache list`; the site file's `cache` names it")


class CacheFiles(Protocol):
    """Raises CacheDeniedError and CacheUnusableError."""

    def names(self, directory: Path) -> tuple[str, ...]:
        """Sorted; none where there is no such directory."""

    def written_at(self, path: Path) -> float | None:
        """Seconds since 1970; None where there is no such file."""

    def read(self, path: Path) -> bytes: ...

    def write(self, path: Path, data: bytes) -> None:
        """The whole file or nothing, readable by its owner alone; directories are made."""

    def keep_aside(self, path: Path, aside: Path) -> None:
        """Give the file a second name, which outlives the next `write`; a file of that name is never overwritten."""


ROOT = "flashinfer_autotune_cache"
MOUNT = "/root/.cache/vllm"
"""The directory in the container that the cache lies in, for an engine that runs as root."""
PLAIN, RANKED = "autotune_configs.json", "autotune_configs_dp0_rank0.json"
FILES = (PLAIN, RANKED)
# 0.30 names the file without its rank and 0.32 with it; 0.31 was not read.
_RANKED_FROM = "0.31.0"
# 0.33 on one GPU asks FlashInfer's managed store instead.
_ELSEWHERE_FROM = "0.33.0"
ELSEWHERE = "/root/.cache/flashinfer/autotune/v2"


def file_name(version: str | None) -> str:
    """The name of the file that this engine version looks for; a build of unknown age is taken for a recent past."""
    return RANKED if _reached(version, _RANKED_FROM) else PLAIN


def set_path(flashinfer: str, arch: str, identity: str, version: str | None) -> PurePosixPath:
    """The file of one set, below the cache directory."""
    return PurePosixPath(ROOT) / flashinfer / arch / identity / file_name(version)


def managed_store_note(version: str | None) -> str | None:
    """What has to be said of a version whose sets are not found here."""
    if not _reached(version, _ELSEWHERE_FROM):
        return None
    return (
        f"vLLM {version} on one GPU keeps its tuning in {ELSEWHERE}, outside {MOUNT}: it is lost with the container "
        "unless that directory is mounted too, or VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR is set; identities of the engine "
        "configuration play no part there"
    )


def _reached(version: str | None, first: str) -> bool:
    key, limit = version_key(version or ""), version_key(first)
    return key is not None and limit is not None and key >= limit


# Digits of an identity that tell two of them apart; people write eight.
DIGITS = 8


@dataclass(frozen=True, slots=True)
class ExpectedSet:
    """The set that a release loads. `identity` is the name of its directory, or the beginning of that name.

    `tuning_seconds` is what a boot without the set takes longer, where it was measured.
    """

    identity: str | None = None
    configs: int | None = None
    basis: str | None = None
    tuning_seconds: float | None = None
    degrades: bool = False
    """A lane without it is degraded, as the recipe says."""


def short_identity(identity: str) -> str:
    """The eight digits that people write."""
    return identity[:DIGITS]


def is_same_identity(one: str, other: str) -> bool:
    """Records keep the beginning of the name: `9ac7b387`, `08c89d94…4796`."""
    first, second = one.partition("…")[0], other.partition("…")[0]
    length = min(len(first), len(second))
    return length >= DIGITS and first[:length] == second[:length]


def tuning_time(seconds: float | None) -> str:
    """How long tuning takes, as a person says it; the range that was seen where nothing closer is known."""
    if seconds is None:
        return "16 to 81 minutes on a Station"
    return f"about {seconds / 60:.0f} minutes"


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
    content: SetContent | None = None
    problem: str | None = None

    @property
    def path(self) -> PurePosixPath:
        return PurePosixPath(ROOT) / self.flashinfer / self.arch / self.identity / self.file

    @property
    def mismatch(self) -> str | None:
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
            "problem": self.problem or self.mismatch,
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
        content = parse_set(files.read(path))
    except CacheDeniedError:
        problem = f"it belongs to another user: sudo sha256sum {path}"
    except InvalidSetError as error:
        problem = str(error)
    used_at = files.written_at(path)
    return TuningSet(found.flashinfer, found.arch, found.identity, found.file, used_at, content, problem)


def sets_of_identity(sets: Iterable[TuningSet], identity: str) -> tuple[TuningSet, ...]:
    """Those whose directory is named so, or begins so."""
    return tuple(one for one in sets if is_same_identity(one.identity, identity))
