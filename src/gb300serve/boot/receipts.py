"""Receipts: lines that a good boot prints (or must not print), compared with its log."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from gb300serve.boot.events import BootBegan, Event, Receipt, ReceiptValue, TuningMiss
from gb300serve.boot.lines import parse

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
    """Part of a log line, with at most one `{value}`, `tolerance` absolute. `forbidden`: no line may contain it."""

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
        return self.value is None or found is None or abs(found - self.value) <= self.tolerance + _ROUNDING


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
        keys = ("name", "kind", "state", "missing", "expected", "tolerance", "found", "text")
        return {key: getattr(self, key) for key in keys}


def shown(value: float | str | None) -> str:
    """A figure without superfluous digits; a text unchanged."""
    if isinstance(value, float | int):
        return f"{value:.10g}" if abs(value) < 1e10 else f"{value:.0f}"
    return "nothing" if value is None else value


class ReceiptBook:
    """Takes the log of one boot, and reports at any time which receipts it contains."""

    def __init__(self, expected: Iterable[ExpectedLine]) -> None:
        self._expected = tuple(expected)
        self._results: dict[int, CheckedReceipt] = {}

    def restart(self) -> None:
        """Another boot begins in the same log."""
        self._results.clear()

    def feed(self, text: str) -> None:
        """One record of the log."""
        for index, receipt in enumerate(self._expected):
            if receipt.needle in text:
                known = self._results.get(index)
                # A line may come twice (two captures of graphs): one that agrees is enough.
                if known is None or known.state == "different":
                    self._check(index, receipt, text)

    def results(self) -> tuple[CheckedReceipt, ...]:
        """In the order of the recipe."""
        return tuple(self._results.get(index) or _without_line(receipt) for index, receipt in enumerate(self._expected))

    def _check(self, index: int, receipt: ExpectedLine, text: str) -> None:
        match = receipt.pattern.search(text)
        if match is None:
            return
        found = float(match[1].replace(",", "")) if match.groups() else None
        fits = receipt.accepts(found)
        if receipt.forbidden and not fits:
            return
        state: ReceiptState = "forbidden" if receipt.forbidden else "kept" if fits else "different"
        self._results[index] = CheckedReceipt(
            receipt.line,
            state,
            receipt.missing,
            expected=receipt.value if receipt.has_figure else None,
            found=found,
            tolerance=receipt.tolerance,
            text=text,
        )


def _without_line(receipt: ExpectedLine) -> CheckedReceipt:
    state: ReceiptState = "kept" if receipt.forbidden else "missing"
    expected = receipt.value if receipt.has_figure else None
    return CheckedReceipt(receipt.line, state, receipt.missing, expected=expected, tolerance=receipt.tolerance)


# How much a figure may differ between boots: the Station's own checks allow 0.5 % of the KV cache's tokens.
_SHARE_OF_TOKENS = 0.005
# A tolerance as large as the figure itself would accept nothing at all (graphs of a small model take 0.06 GiB).
_MOST_OF_FIGURE = 0.5


@dataclass(frozen=True, slots=True)
class _Kind:
    name: str
    value: str | None
    line: str
    tolerance: float = 0.0
    missing: Policy = "degrade"
    last: bool = False
    """The line comes several times, and only its last figure counts."""

    def allowed(self, figure: float) -> float:
        """The tolerance for a figure of this kind, in its unit."""
        if self.value == "tokens":
            return float(round(figure * _SHARE_OF_TOKENS))
        return min(self.tolerance, float(f"{abs(figure) * _MOST_OF_FIGURE:.2g}"))


_KINDS = (
    _Kind("offloaded_gib", "gib", "Total CPU offloaded parameters: {value}", 0.01, "fail"),
    _Kind("engram_table", "rows", "Engram table offloaded to pinned host memory: {value} rows"),
    _Kind("kv_cache_format", None, "Using DeepSeek's {format} KV cache format"),
    _Kind("kv_cache_gib", "gib", "Available KV cache memory: {value} GiB", 0.05),
    _Kind("kv_cache_tokens", "tokens", "GPU KV cache size: {value} tokens"),
    # Once while the engine profiles its memory, once for good.
    _Kind("graph_capture", "gib", "secs, took {value} GiB", 0.1, last=True),
    _Kind("model_loading", "gib", "mem usage={value} GB.", 0.1),
    _Kind("token_pool", "tokens", "max_total_num_tokens={value}, "),
    _Kind("tuning_loaded", "configs", "Loaded {value} configs"),
    _Kind("hook_residency", "layers", "PIN_HOT rehome done layers={value} ", 0.0, "fail"),
    _Kind("hook_residency", "hbm_gib", "HBM_expert={value}GiB", 0.05, "fail"),
    _Kind("hook_residency", "pinned_gib", "pinned_expert={value}GiB", 0.05),
)


def cache_tokens(receipts: Iterable[tuple[str, float | None]]) -> int | None:
    """The tokens in the KV cache (SGLang: in its token pool) by these lines and figures; None if none states them."""
    starts = [kind.line.partition(VALUE)[0] for kind in _KINDS if kind.value == "tokens"]
    sizes = (int(size) for line, size in receipts if size is not None and any(start in line for start in starts))
    return next(sizes, None)


@dataclass(slots=True)
class LearnedBoot:
    """The receipts of the last boot in a log, in order."""

    figures: list[tuple[str, dict[str, ReceiptValue]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def take(self, events: Iterable[Event]) -> None:
        """Add events of the boot machine."""
        for event in events:
            if isinstance(event, BootBegan):
                self.figures.clear()
                self.texts.clear()
            elif isinstance(event, Receipt):
                self.figures.append((event.name, dict(event.values)))
                self.texts.append(event.text)

    def figure(self, name: str, value: str) -> int | float | str | None:
        """The last figure with this name."""
        return next(
            (values[value] for receipt, values in reversed(self.figures) if receipt == name and value in values), None
        )

    def receipts(self, basis: str) -> tuple[ExpectedLine, ...]:
        """Proposals, each of which agrees with this log."""
        proposals = dict.fromkeys(self._proposed(basis))
        book = ReceiptBook(proposals)
        for text in self.texts:
            book.feed(text)
        return tuple(
            receipt for receipt, result in zip(proposals, book.results(), strict=True) if result.state == "kept"
        )

    def tuning(self, basis: str) -> dict[str, Any] | None:
        """`boot.tuning_cache`, if the log names the set."""
        identity = self.figure("tuning_cache", "identity")
        configs = self.figure("tuning_saved", "configs")
        if identity is None:
            return None
        return {"identity": identity, **({"configs": configs} if configs is not None else {}), "basis": basis}

    def _proposed(self, basis: str) -> Iterator[ExpectedLine]:
        for kind in _KINDS:
            found = [values for name, values in self.figures if name == kind.name]
            for values in found[-1:] if kind.last else found:
                if kind.value is None:
                    yield ExpectedLine(kind.line.format(**values), missing=kind.missing, basis=basis)
                elif isinstance(figure := values.get(kind.value), int | float):
                    yield ExpectedLine(kind.line, float(figure), kind.allowed(figure), kind.missing, basis=basis)


def as_recipe(receipts: Iterable[ExpectedLine], tuning: dict[str, Any] | None) -> dict[str, Any]:
    """The section of a recipe; whole numbers without a fraction."""
    lines: list[dict[str, Any]] = [
        {"line": receipt.line}
        | ({} if receipt.value is None else {"value": _plain(receipt.value), "tolerance": _plain(receipt.tolerance)})
        | ({"missing": receipt.missing} if receipt.missing != "degrade" else {})
        | {"basis": receipt.basis or ""}
        for receipt in receipts
    ]
    return {"boot": {"receipts": lines, **({"tuning_cache": tuning} if tuning else {})}}


def _plain(value: float) -> int | float:
    return int(value) if value == int(value) else value


Outcome = Literal["hit", "partial", "miss"]


@dataclass(frozen=True, slots=True)
class TuningOutcome:
    """The result of the kernel-tuning cache.

    `partial`: some kernels were loaded and others tuned. `loaded` and `new` are counts, None if the log has none.
    """

    outcome: Outcome
    loaded: int | None = None
    new: int | None = None
    path: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The value of `tuning` in `diagnose --json`."""
        return {"cache": self.outcome, "loaded": self.loaded, "new": self.new, "path": self.path}

    def sentence(self) -> str:
        """Such as `tuning cache: hit, 210 configurations loaded`."""
        parts = [f"tuning cache: {self.outcome}"]
        parts += [] if self.loaded is None else [f"{self.loaded} configurations loaded"]
        if self.outcome != "hit":
            parts += ["kernels are being tuned" if self.new is None else f"{self.new} tuned"]
        return ", ".join(parts)


@dataclass(slots=True)
class LogFacts:
    """The facts of the last boot in a log, from each line and the boot machine's events for it."""

    prefix: str
    """The beginning of the line with the engine's arguments (ArgumentEcho.prefix)."""
    echo: str = ""
    """The text of that line, or ""."""
    receipts: dict[str, Mapping[str, ReceiptValue]] = field(default_factory=dict)
    missed: bool = False

    def take(self, line: str, events: Iterable[Event]) -> None:
        """Add a line; another boot begins anew."""
        for event in events:
            match event:
                case BootBegan():
                    self.echo, self.receipts, self.missed = "", {}, False
                case Receipt(name, values):
                    self.receipts[name] = values
                case TuningMiss():
                    self.missed = True
                case _:
                    pass
        if self.prefix in line:
            self.echo = next((text for piece in line.split("\r") if self.prefix in (text := parse(piece).text)), "")

    def figure(self, receipt: str, key: str) -> Any:
        """One value of a receipt; None if the log has none."""
        return self.receipts.get(receipt, {}).get(key)

    def number(self, receipt: str, key: str) -> int | float | None:
        """The same as a number; None also for the text of a damaged line."""
        value = self.receipts.get(receipt, {}).get(key)
        return None if isinstance(value, str) else value

    @property
    def tuning(self) -> TuningOutcome | None:
        """None if the boot ended before it, or printed nothing about it."""
        loaded, new = self._count("tuning_loaded", "configs"), self._count("tuning_saved", "new")
        path = self.figure("tuning_cache", "path") or self.figure("tuning_loaded", "path")
        ignored = "tuning_cache_ignored" in self.receipts
        if self.missed or new or ignored:
            return TuningOutcome("partial" if loaded and not ignored else "miss", loaded, new, path)
        return TuningOutcome("hit", loaded, new, path) if loaded else None

    def _count(self, receipt: str, key: str) -> int | None:
        value = self.number(receipt, key)
        return value if isinstance(value, int) else None
