"""What is wrong with an engine's options: a value with an address below `engine.options`."""

from dataclasses import dataclass
from typing import TypeAlias

from gb300serve.core.diagnostics import Severity

Path: TypeAlias = tuple[str | int, ...]

NAMES = {
    "OPT001": "unknown-option",
    "OPT002": "option-wrong-type",
    "OPT003": "option-wrong-choice",
    "OPT004": "option-wrong-arity",
    "OPT005": "option-has-no-off-form",
    "OPT006": "unknown-json-field",
    "OPT007": "option-out-of-range",
    "OPT008": "engine-version-without-table",
    "OPT009": "list-swallows-next-words",
    "OPT010": "speculation-schedule-refused",
    "OPT011": "value-reads-as-a-flag",
    "OPT012": "unknown-parser",
    "OPT013": "model-said-twice",
    "OPT014": "served-name-with-colon",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding about the options. `path` leads from `engine.options` to the place, keys and list indexes."""

    path: Path
    code: str
    message: str
    hint: str | None = None
    severity: Severity = "error"

    @property
    def name(self) -> str:
        """The finding's name, such as `unknown-option`."""
        return NAMES[self.code]


def dotted(path: Path) -> str:
    """`engine.options.cpu_offload_params.0`, the way that diagnostics address a place."""
    return ".".join(map(str, ("engine", "options", *path)))
