"""The kernel-tuning caches of the simulated Station: at first those of the measured releases, then what boots add."""

from pathlib import Path

from gb300serve.fit.catalog import checkpoints
from gb300serve.simulator.engine_settings import DEFAULT_VERSION
from gb300serve.simulator.engine_tuning import seeds, store_configs


def seed(root: Path, engine_version: str | None) -> None:
    """Put the files of every recorded boot there, once for each engine version: a removed one stays removed."""
    version = engine_version or DEFAULT_VERSION
    marker = root / f"seeded-{version.replace('/', '_')}"
    if marker.exists():
        return
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    for checkpoint in checkpoints():
        for path, configs in seeds(checkpoint, version).items():
            if not (root / path).exists():
                store_configs(root, path, configs)
    marker.touch(mode=0o600)
