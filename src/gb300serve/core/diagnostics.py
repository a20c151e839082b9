"""A finding is a value with an address; errors carry them, lint prints them."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]
RANK: dict[Severity, int] = {"note": 0, "warning": 1, "error": 2}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding. Lines and columns count from 1; `path` joins keys and indexes with dots."""

    code: str
    name: str
    severity: Severity
    message: str
    hint: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    path: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The object that every `--json` output carries."""
        return asdict(self)
