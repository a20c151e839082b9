"""The checkpoints that the package knows, read from `engines/models/*.json`."""

import functools
import json
from pathlib import Path

from gb300serve.fit.checkpoint import Checkpoint, checkpoint_of

# Not importlib.resources: its import alone costs 30 ms, and the package is always a directory.
_MODELS = Path(__file__).parent.parent / "engines" / "models"


@functools.cache
def checkpoints() -> tuple[Checkpoint, ...]:
    """All of them, by file name."""
    return tuple(checkpoint_of(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(_MODELS.glob("*.json")))


def checkpoint(repo: str) -> Checkpoint | None:
    """The checkpoint of this repository, such as `deepseek-ai/DeepSeek-V4.1-Flash`."""
    return next((known for known in checkpoints() if known.repo.lower() == repo.lower()), None)


def checkpoint_at(path: str) -> Checkpoint | None:
    """The checkpoint that a host path names: its last part begins with the repository's own name."""
    base = path.rstrip("/").rpartition("/")[2].lower()
    named = (known for known in checkpoints() if base.startswith(known.repo.rpartition("/")[2].lower()))
    return max(named, key=lambda known: len(known.repo), default=None)
