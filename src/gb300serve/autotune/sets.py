"""The tuning sets of a cache directory: version, architecture, identity, number of kernels, last use."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from gb300serve.core.errors import Action, MachineError
from gb300serve.engines.tables import version_key

_METADATA = "_metadata"


class InvalidSetError(ValueError):
    """The data is not a tuning set; the message states why."""


@dataclass(frozen=True, slots=True)
class SetContent:
    """`configs` is the number of kernels, `metadata` the environment that FlashInfer compares before it loads them."""

    configs: int
    sha256: str
    metadata: Mapping[str, str]


def parse_set(data: bytes) -> SetContent:
    """Parse the file of a set; raises InvalidSetError."""
    try:
        document = json.loads(data)
    except ValueError as error:
        raise InvalidSetError(f"not JSON: {error}") from error
    if not isinstance(document, dict):
        raise InvalidSetError("not an object")
    metadata = document.get(_METADATA)
    return SetContent(
        sum(not name.startswith("_") for name in document),
        hashlib.sha256(data).hexdigest(),
        {str(key): _text(value) for key, value in metadata.items()} if isinstance(metadata, dict) else {},
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def metadata_differences(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Differences such as `cublas_version: 13.0 and 13.1`; entries that only one environment has are ignored."""
    common = [name for name in before if name in after]
    return tuple(f"{name}: {before[name]} and {after[name]}" for name in common if before[name] != after[name])


def flashinfer_of(metadata: Mapping[str, str]) -> str | None:
    """The FlashInfer version that the set was tuned with."""
    return next((metadata[name] for name in ("flashinfer_version", "flashinfer") if name in metadata), None)


class CacheDeniedError(MachineError):
    """The file belongs to another user (the engine's sets belong to root, mode 0600)."""

    def __init__(self, path: Path, what: str, command: str) -> None:
        super().__init__(f"{path} cannot be {what}: it belongs to another user", hint=f"run as root: {command}")
        self.path = path


class CacheUnusableError(MachineError):
    """A file of the cache cannot be used for another reason."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path}: {reason}",
            hint="check `cache` in the site file",
            suggest=(Action("cache list", "see the sets", ref=""),),
        )


class CacheFiles(Protocol):
    """Raises CacheDeniedError and CacheUnusableError."""

    def names(self, directory: Path) -> tuple[str, ...]:
        """Names of the entries, sorted; empty if the directory does not exist."""

    def written_at(self, path: Path) -> float | None:
        """Seconds since 1970; None if the file does not exist."""

    def read(self, path: Path) -> bytes: ...

    def write(self, path: Path, data: bytes) -> None:
        """Write atomically, readable by the owner only; missing directories are created."""

    def back_up(self, path: Path, backup: Path) -> None:
        """Give the file a second name, which the next `write` leaves alone; an existing backup is never overwritten."""


ROOT = "flashinfer_autotune_cache"
MOUNT = "/root/.cache/vllm"
"""The directory of the cache in the container, for an engine that runs as root."""
PLAIN, RANKED = "autotune_configs.json", "autotune_configs_dp0_rank0.json"
FILES = (PLAIN, RANKED)
# 0.30 names the file without its rank, 0.32 with it; the source of 0.31 was not checked.
_RANKED_FROM = "0.31.0"
# 0.33 on one GPU uses FlashInfer's managed store instead.
_MANAGED_FROM = "0.33.0"
MANAGED_STORE = "/root/.cache/flashinfer/autotune/v2"


def file_name(version: str | None) -> str:
    """The file name that this engine version loads; a build of unknown version counts as older than 0.31."""
    return RANKED if _reached(version, _RANKED_FROM) else PLAIN


def set_path(flashinfer: str, arch: str, identity: str, version: str | None) -> PurePosixPath:
    """The path of a set, relative to the cache directory."""
    return PurePosixPath(ROOT) / flashinfer / arch / identity / file_name(version)


def managed_store_note(version: str | None) -> str | None:
    """A note for engine versions that do not use this cache; None for the others."""
    if not _reached(version, _MANAGED_FROM):
        return None
    return (
        f"vLLM {version} on one GPU keeps its tuning in {MANAGED_STORE}, outside {MOUNT}. It is lost with the "
        "container, unless that directory is mounted or VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR is set. That store does not "
        "use identities of the engine configuration"
    )


def _reached(version: str | None, first: str) -> bool:
    key, limit = version_key(version or ""), version_key(first)
    return key is not None and limit is not None and key >= limit


# The digits that distinguish identities in practice.
DIGITS = 8


@dataclass(frozen=True, slots=True)
class ExpectedSet:
    """The set that a release loads. `identity` starts its directory's name.

    `tuning_seconds`: the least and the most that was measured without it.
    """

    identity: str | None = None
    configs: int | None = None
    basis: str | None = None
    tuning_seconds: tuple[float, float] | None = None
    degrades: bool = False
    """The recipe states that the lane is degraded without the set."""
    sha256: str | None = None
    """Of the set's file, if the recipe names one of several sets of this identity."""


def short_identity(identity: str) -> str:
    """The first eight digits."""
    return identity[:DIGITS]


def is_same_identity(first: str, second: str) -> bool:
    """Compare the known beginnings: records abbreviate the name to `9ac7b387` or `08c89d94…4796`."""
    first, second = first.partition("…")[0], second.partition("…")[0]
    length = min(len(first), len(second))
    return length >= DIGITS and first[:length] == second[:length]


def tuning_time(seconds: tuple[float, float] | None) -> str:
    """How long tuning takes, as text; without a measurement, the range that was observed."""
    if seconds is None:
        return "16 to 81 minutes on a Station"
    least, most = (f"{value / 60:.0f}" for value in seconds)
    return f"about {most} minutes" if least == most else f"{least} to {most} minutes"


@dataclass(frozen=True, slots=True)
class TuningSet:
    """One file. `used_at` is when an engine last wrote it, which happens at each boot.

    `content` is None if the file cannot be read; `problem` states why.
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
        """Why FlashInfer will ignore the set: it was tuned with another version than its directory names."""
        measured = flashinfer_of(self.content.metadata) if self.content else None
        if measured is None or measured == self.flashinfer:
            return None
        return f"FlashInfer {self.flashinfer} ignores the set: its _metadata names FlashInfer {measured}"

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
    """All sets, by version, architecture and identity. A set that cannot be read is listed with the reason."""
    root = directory / ROOT
    return tuple(
        _read(files, directory, TuningSet(version, arch, identity, name))
        for version in files.names(root)
        for arch in files.names(root / version)
        for identity in files.names(root / version / arch)
        for name in files.names(root / version / arch / identity)
        if name in FILES
    )


def _read(files: CacheFiles, directory: Path, tuning_set: TuningSet) -> TuningSet:
    path = directory / tuning_set.path
    content, problem = None, None
    try:
        content = parse_set(files.read(path))
    except CacheDeniedError:
        problem = f"it belongs to another user: sudo sha256sum {path}"
    except InvalidSetError as error:
        problem = str(error)
    return replace(tuning_set, used_at=files.written_at(path), content=content, problem=problem)


def sets_of_identity(sets: Iterable[TuningSet], identity: str) -> tuple[TuningSet, ...]:
    """The sets with this identity."""
    return tuple(tuning_set for tuning_set in sets if is_same_identity(tuning_set.identity, identity))
