"""Receipts: lines that a good boot prints (or must not print), held against its log line by line."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

VALUE = "{value}"
_NUMBER = r"(-?\d[\d,]*(?:\.\d+)?)"
# A figure is compared with what is written down of it: 0.05 and 206.61 are not exact in binary.
_ROUNDING = 1e-9

Policy = Literal["fail", "degrade"]
ReceiptState = Literal["kept", "different", "missing", "forbidden", "unknown"]
"""`forbidden`: a line was printed that must not be; `unknown`: nobody can tell here."""
UNKEPT = frozenset({"different", "missing", "forbidden"})
Kind = Literal["line", "arguments", "patch"]


@dataclass(frozen=True)
class ExpectedLine:
    """One receipt of a recipe. `line` is a piece of a log line with at most one `{value}`; `tolerance` is absolute.

    `forbidden` turns it round: no line may hold it.
    """

    line: str
    value: float | None = None
    tolerance: float = 0.0
    missing: Policy = "degrade"
    forbidden: bool = False
    basis: str | None = None

    @cached_property
    def needle(self) -> str:
        """The longest fixed piece: looked up before the expression is tried."""
        return max(self.line.split(VALUE), key=len)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(_NUMBER.join(map(re.escape, self.line.split(VALUE))))

    @property
    def states_a_figure(self) -> bool:
        return self.value is not None and VALUE in self.line

    def accepts(self, found: float | None) -> bool:
        """Whether the figure that a line gives is the wanted one."""
        if self.value is None or found is None:
            return True
        return abs(found - self.value) <= self.tolerance + _ROUNDING


@dataclass(frozen=True, slots=True)
class CheckedReceipt:
    """What became of one receipt. `name` is its line, `expected` and `found` are figures or texts as they are shown."""

    name: str
    state: ReceiptState
    missing: Policy = "degrade"
    kind: Kind = "line"
    expected: float | str | None = None
    found: float | str | None = None
    tolerance: float = 0.0
    text: str | None = None
    """The log line that gave it."""

    @property
    def good(self) -> bool:
        return self.state not in UNKEPT

    def sentence(self) -> str:
        """What is to be said of it."""
        match self.state:
            case "kept":
                return f"kept: {self.name}" + ("" if self.found is None else f" ({shown(self.found)})")
            case "different":
                wanted = shown(self.expected) + (f" ± {self.tolerance:g}" if self.tolerance else "")
                return f"different: {self.name} (wanted {wanted}, found {shown(self.found)})"
            case "missing":
                wanted = "" if self.expected is None else f" (wanted {shown(self.expected)})"
                return f"missing: {self.name}{wanted}"
            case "forbidden":
                return f"forbidden, and printed: {self.name}"
            case _:
                return f"not checked: {self.name}" + (f" ({self.found})" if self.found else "")

    def as_json(self) -> dict[str, Any]:
        """One object of `receipts` in `gb300serve.receipts/1`."""
        return {
            "name": self.name,
            "kind": self.kind,
            "state": self.state,
            "missing": self.missing,
            "expected": self.expected,
            "tolerance": self.tolerance,
            "found": self.found,
            "text": self.text,
        }


def shown(value: float | str | None) -> str:
    """A figure without needless digits; a text as it is."""
    if isinstance(value, float | int):
        return f"{value:.10g}" if abs(value) < 1e10 else f"{value:.0f}"
    return "nothing" if value is None else value


class ReceiptBook:
    """Takes the texts of one boot's log and tells at any time which receipts it has shown."""

    def __init__(self, expected: Iterable[ExpectedLine]) -> None:
        self._expected = tuple(expected)
        self._seen: dict[int, CheckedReceipt] = {}

    def again(self) -> None:
        """Another boot begins in the same log."""
        self._seen.clear()

    def feed(self, text: str) -> None:
        """One record of the log."""
        for index, wanted in enumerate(self._expected):
            if wanted.needle in text:
                known = self._seen.get(index)
                # A line that comes twice (two captures of graphs) is kept by whichever is right.
                if known is None or known.state == "different":
                    self._look(index, wanted, text)

    def results(self) -> tuple[CheckedReceipt, ...]:
        """In the order of the recipe."""
        return tuple(self._seen.get(index) or _unseen(wanted) for index, wanted in enumerate(self._expected))

    def _look(self, index: int, wanted: ExpectedLine, text: str) -> None:
        match = wanted.pattern.search(text)
        if match is None:
            return
        found = float(match[1].replace(",", "")) if match.groups() else None
        fits = wanted.accepts(found)
        if wanted.forbidden and not fits:
            return
        state: ReceiptState = "forbidden" if wanted.forbidden else "kept" if fits else "different"
        self._seen[index] = CheckedReceipt(
            wanted.line,
            state,
            wanted.missing,
            expected=wanted.value if wanted.states_a_figure else None,
            found=found,
            tolerance=wanted.tolerance,
            text=text,
        )


def _unseen(wanted: ExpectedLine) -> CheckedReceipt:
    state: ReceiptState = "kept" if wanted.forbidden else "missing"
    expected = wanted.value if wanted.states_a_figure else None
    return CheckedReceipt(wanted.line, state, wanted.missing, expected=expected, tolerance=wanted.tolerance)
