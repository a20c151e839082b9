"""The files of a checkpoint, compared with its index, and the revision of its directory."""

import json
import re
from dataclasses import dataclass

HEADER_LENGTH_BYTES = 8
# The format's own limit.
LARGEST_HEADER = 100_000_000
_END = re.compile(rb'"data_offsets"\s*:\s*\[\s*\d+\s*,\s*(\d+)\s*\]')


def header_size(begin: bytes) -> int | None:
    """Bytes of the header, from the file's first eight; None if it is not a safetensors file."""
    size = int.from_bytes(begin[:HEADER_LENGTH_BYTES], "little")
    return size if len(begin) >= HEADER_LENGTH_BYTES and 0 < size <= LARGEST_HEADER else None


def whole_size(begin: bytes) -> int | None:
    """Bytes of the whole file, from everything up to the end of its header; None if the header is invalid."""
    size = header_size(begin)
    if (
        size is None
        or len(begin) < HEADER_LENGTH_BYTES + size
        or begin[HEADER_LENGTH_BYTES : HEADER_LENGTH_BYTES + 1] != b"{"
    ):
        return None
    ends = (int(end) for end in _END.findall(begin, HEADER_LENGTH_BYTES, HEADER_LENGTH_BYTES + size))
    return HEADER_LENGTH_BYTES + size + max(ends, default=0)


@dataclass(frozen=True, slots=True)
class Model:
    """A checkpoint's directory on the host; `repo` and `revision` are those of the recipe."""

    path: str
    repo: str | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class HostRequirements:
    """What a release needs on the host: `sources` of all mounts, `patches` as files with the sha256 of each."""

    image: str
    models: tuple[Model, ...] = ()
    caches: tuple[str, ...] = ()
    """Directories that the container writes."""
    sources: tuple[str, ...] = ()
    patches: tuple[tuple[str, str], ...] = ()
    ports: tuple[int, ...] = ()
    tuning: tuple[str, str] | None = None
    tuning_sha256: str | None = None
    """The host's directory of the engine's cache, and the beginning of the expected identity."""


CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
# `hf download --local-dir` writes the commit to the first line of this file.
METADATA = ".cache/huggingface/download/config.json.metadata"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SNAPSHOT = re.compile(r"/models--[^/]+/snapshots/([0-9a-f]{40})$")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """One checkpoint on the host. Names are files of the directory, `bytes` the sum of its shards."""

    model: Model
    exists: bool = True
    config: bool = True
    shards: int = 0
    bytes: int = 0
    absent: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    """Not as long as the header of the file states, or not a safetensors file."""
    linked_away: tuple[str, ...] = ()
    """Links that lead out of the directory: a container that mounts it alone finds nothing there."""
    revision: str | None = None
    problem: str | None = None
    """Why the files could not be read."""

    @property
    def path(self) -> str:
        return self.model.path

    @property
    def complete(self) -> bool:
        return self.exists and self.config and bool(self.shards) and not (self.absent or self.cut)


def indexed(text: str) -> tuple[str, ...] | None:
    """The files that an index names, sorted; None if it is not an index."""
    try:
        return tuple(sorted({str(name) for name in json.loads(text)["weight_map"].values()}))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def is_config(text: str) -> bool:
    """Whether config.json is a JSON object: a cut download and a pointer of git-lfs are not."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def revision(real: str, metadata: str | None) -> str | None:
    """The commit that a directory claims: a Hugging Face snapshot, its name's end, or the record of the download."""
    snapshot = _SNAPSHOT.search(real)
    if snapshot:
        return snapshot[1]
    noted = (metadata or "").partition("\n")[0].strip()
    if _COMMIT.fullmatch(noted):
        return noted
    named = _COMMIT.findall(real.rpartition("/")[2])
    return named[-1] if named else None


TUNING_CACHE_ROOT = "flashinfer_autotune_cache"
TUNING_CACHE_DEPTH = 3
"""Directories below the root: version, architecture, identity."""


def matching_set(identity: str, paths: tuple[str, ...]) -> str | None:
    """The directory whose name starts with the recorded identity."""
    return next((path for path in paths if path.rpartition("/")[2].startswith(identity)), None)
