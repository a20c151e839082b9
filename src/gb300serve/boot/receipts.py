"""Receipts: lines that a good boot prints (or must not print), compared with its log."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from gb300serve.boot.events import BootBegan, Event, Receipt, ReceiptValue

VALUE = "{value}"
_NUMBER = r"(-?\d[\d,]*(?:\.\d+)?)"
# Decimal figures such as 0.05 and 206.61 are not exact in binary.
_ROUNDING = 1e-9

Policy = Literal["fail", "degrade"]
ReceiptState = Literal["kept", "different", "missing", "forbidden", "unknown"]
"""`forbidden`: a line was printed that must not be; `unknown`: it could not be checked."""
UNKEPT = frozenset({"different", "missing", "forbidden"})
Kind = Literal["line", "arguments", "patch"]


@dataclass(frozen=True)
class ExpectedLine:
    """One receipt of a recipe. `line` is part of a log line, with at most one `{value}`; `tolerance` is absolute.

    `forbidden`: no line may contain it.
    """

    line: str
    value: float | None = None
    tolerance: float = 0.0
    missing: Policy = "degrade"
    forbidden: bool = False
    basis: str | None = None

    @cached_property
    def needle(self) -> str:
        """The longest fixed part: searched before the pattern is tried."""
        return max(self.line.split(VALUE), key=len)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(_NUMBER.join(map(re.escape, self.line.split(VALUE))))

    @property
    def has_figure(self) -> bool:
        return self.value is not None and VALUE in self.line

    def accepts(self, found: float | None) -> bool:
        """Whether the figure of a line is the expected one."""
        if self.value is None or found is None:
            return True
        return abs(found - self.value) <= self.tolerance + _ROUNDING


@dataclass(frozen=True, slots=True)
class CheckedReceipt:
    """The result of one receipt. `name` is its line; `expected` and `found` are figures or texts."""

    name: str
    state: ReceiptState
    missing: Policy = "degrade"
    kind: Kind = "line"
    expected: float | str | None = None
    found: float | str | None = None
    tolerance: float = 0.0
    text: str | None = None
    """The log line that matched."""

    @property
    def good(self) -> bool:
        return self.state not in UNKEPT

    def sentence(self) -> str:
        """One line for the terminal."""
        match self.state:
            case "kept":
                return f"kept: {self.name}" + ("" if self.found is None else f" ({shown(self.found)})")
            case "different":
                wanted = shown(self.expected) + (f" ± {self.tolerance:g}" if self.tolerance else "")
                return f"different: {self.name} (expected {wanted}, found {shown(self.found)})"
            case "missing":
                wanted = "" if self.expected is None else f" (expected {shown(self.expected)})"
                return f"missing: {self.name}{wanted}"
            case "forbidden":
                return f"forbidden, but printed: {self.name}"
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
    """A figure without superfluous digits; a text unchanged."""
    if isinstance(value, float | int):
        return f"{value:.10g}" if abs(value) < 1e10 else f"{value:.0f}"
    return "nothing" if value is None else value


class ReceiptBook:
    """Takes the log of one boot, and reports at any time which receipts it contains."""

    def __init__(self, expected: Iterable[ExpectedLine]) -> None:
        self._expected = tuple(expected)
        self._seen: dict[int, CheckedReceipt] = {}

    def restart(self) -> None:
        """Another boot begins in the same log."""
        self._seen.clear()

    def feed(self, text: str) -> None:
        """One record of the log."""
        for index, wanted in enumerate(self._expected):
            if wanted.needle in text:
                known = self._seen.get(index)
                # A line may come twice (two captures of graphs): one that agrees is enough.
                if known is None or known.state == "different":
                    self._check(index, wanted, text)

    def results(self) -> tuple[CheckedReceipt, ...]:
        """In the order of the recipe."""
        return tuple(self._seen.get(index) or _without_line(wanted) for index, wanted in enumerate(self._expected))

    def _check(self, index: int, wanted: ExpectedLine, text: str) -> None:
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
            expected=wanted.value if wanted.has_figure else None,
            found=found,
            tolerance=wanted.tolerance,
            text=text,
        )


def _without_line(wanted: ExpectedLine) -> CheckedReceipt:
    state: ReceiptState = "kept" if wanted.forbidden else "missing"
    expected = wanted.value if wanted.has_figure else None
    return CheckedReceipt(wanted.line, state, wanted.missing, expected=expected, tolerance=wanted.tolerance)


# How much a figure may differ between boots: the Station's own checks allow 0.5 % of the KV cache's tokens.
_SHARE_OF_TOKENS = 0.005


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a receipt of the log becomes a receipt of a recipe: its value, its line, its tolerance."""

    name: str
    value: str | None
    line: str
    tolerance: float = 0.0
    missing: Policy = "degrade"


_KINDS = (
    _Kind("offloaded_gib", "gib", "Total CPU offloaded parameters: {value}", 0.01, "fail"),
    _Kind("engram_table", "rows", "Engram table offloaded to pinned host memory: {value} rows"),
    _Kind("kv_cache_format", None, "Using DeepSeek's {format} KV cache format"),
    _Kind("kv_cache_gib", "gib", "Available KV cache memory: {value} GiB", 0.05),
    _Kind("kv_cache_tokens", "tokens", "GPU KV cache size: {value} tokens"),
    _Kind("graph_capture", "gib", "secs, took {value} GiB", 0.1),
    _Kind("model_loading", "gib", "mem usage={value} GB.", 0.1),
    _Kind("token_pool", "tokens", "max_total_num_tokens={value}, "),
    _Kind("tuning_loaded", "configs", "Loaded {value} configs"),
    _Kind("hook_residency", "layers", "PIN_HOT rehome done layers={value} ", 0.0, "fail"),
    _Kind("hook_residency", "hbm_gib", "HBM_expert={value}GiB", 0.05, "fail"),
    _Kind("hook_residency", "pinned_gib", "pinned_expert={value}GiB", 0.05),
)


@dataclass(slots=True)
class LearnedBoot:
    """The receipts of the last boot in a log, in order."""

    seen: list[tuple[str, dict[str, ReceiptValue]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def take(self, events: Iterable[Event]) -> None:
        """Add events of the boot machine."""
        for event in events:
            if isinstance(event, BootBegan):
                self.seen.clear()
                self.texts.clear()
            elif isinstance(event, Receipt):
                self.seen.append((event.name, dict(event.values)))
                self.texts.append(event.text)

    def figure(self, name: str, value: str) -> int | float | str | None:
        """The last figure with this name."""
        return next((values[value] for seen, values in reversed(self.seen) if seen == name and value in values), None)

    def receipts(self, basis: str) -> tuple[ExpectedLine, ...]:
        """Proposals, each of which agrees with this log."""
        found = dict.fromkeys(self._proposed(basis))
        book = ReceiptBook(found)
        for text in self.texts:
            book.feed(text)
        return tuple(receipt for receipt, result in zip(found, book.results(), strict=True) if result.state == "kept")

    def tuning(self, basis: str) -> dict[str, Any] | None:
        """`boot.tuning_cache`, if the log names the set."""
        identity = self.figure("tuning_cache", "identity")
        configs = self.figure("tuning_saved", "configs")
        if identity is None:
            return None
        return {"identity": identity, **({"configs": configs} if configs is not None else {}), "basis": basis}

    def _proposed(self, basis: str) -> Iterator[ExpectedLine]:
        for kind in _KINDS:
            for name, values in self.seen:
                if name != kind.name:
                    continue
                if kind.value is None:
                    yield ExpectedLine(kind.line.format(**values), missing=kind.missing, basis=basis)
                elif isinstance(figure := values.get(kind.value), int | float):
                    tolerance = round(figure * _SHARE_OF_TOKENS) if kind.value == "tokens" else kind.tolerance
                    yield ExpectedLine(kind.line, float(figure), float(tolerance), kind.missing, basis=basis)


def as_recipe(receipts: Iterable[ExpectedLine], tuning: dict[str, Any] | None) -> dict[str, Any]:
    """The section of a recipe; whole numbers without a fraction."""
    lines = [
        {
            "line": receipt.line,
            **(
                {"value": _plain(receipt.value), "tolerance": _plain(receipt.tolerance)}
                if receipt.value is not None
                else {}
            ),
            **({"missing": receipt.missing} if receipt.missing != "degrade" else {}),
            "basis": receipt.basis or "",
        }
        for receipt in receipts
    ]
    return {"boot": {"receipts": lines, **({"tuning_cache": tuning} if tuning else {})}}


def _plain(value: float) -> int | float:
    return int(value) if value == int(value) else value
