"""The kernel-tuning cache in the engine's cache directory: `flashinfer_autotune_cache/<version>/<arch>/<identity>`."""

ROOT = "flashinfer_autotune_cache"
DEPTH = 3
"""Directories below the root: version, architecture, identity."""


def matching(identity: str, paths: tuple[str, ...]) -> str | None:
    """The directory whose name begins as the release's record has it."""
    return next((path for path in paths if path.rpartition("/")[2].startswith(identity)), None)
