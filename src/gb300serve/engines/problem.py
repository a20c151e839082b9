"""What is wrong with an engine's options: a value with an address below `engine.options`."""

from dataclasses import dataclass
from typing import TypeAlias

from gb300serve.core.diagnostics import Severity

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding about the options. `path` leads from `engine.options` to the place, keys and list indexes."""

    path: Path
    code: str
    message: str
    hint: str | None = None
    severity: Severity | None = None
    """Overrides the severity of the catalogue."""


def dotted(path: Path) -> str:
    """`engine.options.cpu_offload_params.0`, the way that diagnostics address a place."""
    return ".".join(map(str, ("engine", "options", *path)))
