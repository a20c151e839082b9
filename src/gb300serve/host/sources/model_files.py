"""The files of a checkpoint against its own index, and the revision that its directory claims."""

import json
import re
from dataclasses import dataclass

from gb300serve.host.wanted import Model

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
# `hf download --local-dir` notes the commit in the first line of this file.
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
    """Shorter or longer than the file's own header says, or no such file at all."""
    linked_away: tuple[str, ...] = ()
    """Links that lead out of the directory: a container that mounts it alone finds nothing there."""
    revision: str | None = None
    problem: str | None = None
    """Why the files could not be looked at."""

    @property
    def path(self) -> str:
        return self.model.path

    @property
    def complete(self) -> bool:
        return self.exists and self.config and bool(self.shards) and not (self.absent or self.cut)


def indexed(text: str) -> tuple[str, ...] | None:
    """The files that an index names, sorted; None where it is no index."""
    try:
        found = json.loads(text)["weight_map"].values()
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return tuple(sorted({str(name) for name in found}))


def is_config(text: str) -> bool:
    """Whether config.json is a JSON object: a cut download and a pointer of git-lfs are not."""
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def revision(real: str, metadata: str | None) -> str | None:
    """The commit that a directory claims: a Hugging Face snapshot, its name's end, or what the download noted."""
    snapshot = _SNAPSHOT.search(real)
    if snapshot:
        return snapshot[1]
    noted = (metadata or "").partition("\n")[0].strip()
    if _COMMIT.fullmatch(noted):
        return noted
    named = _COMMIT.findall(real.rpartition("/")[2])
    return named[-1] if named else None
