"""Receipts: lines that a good boot prints (or must not print), held against its log line by line."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from gb300serve.boot.events import BootBegan, Event, Receipt, ReceiptValue

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


# What a figure may differ by from boot to boot: of the KV cache 0.5 % of its tokens was practised on the Station.
_SHARE_OF_TOKENS = 0.005


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a receipt of the log becomes one of a recipe: which value, in which line, how closely."""

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
    """What the last boot of a log showed, in order."""

    seen: list[tuple[str, dict[str, ReceiptValue]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def take(self, events: Iterable[Event]) -> None:
        """Events of the boot machine."""
        for event in events:
            if isinstance(event, BootBegan):
                self.seen.clear()
                self.texts.clear()
            elif isinstance(event, Receipt):
                self.seen.append((event.name, dict(event.values)))
                self.texts.append(event.text)

    def figure(self, name: str, value: str) -> int | float | str | None:
        """The last figure of this name."""
        return next((values[value] for seen, values in reversed(self.seen) if seen == name and value in values), None)

    def receipts(self, basis: str) -> tuple[ExpectedLine, ...]:
        """Proposals, each of which this very log keeps."""
        found = dict.fromkeys(self._proposed(basis))
        book = ReceiptBook(found)
        for text in self.texts:
            book.feed(text)
        return tuple(one for one, result in zip(found, book.results(), strict=True) if result.state == "kept")

    def tuning(self, basis: str) -> dict[str, Any] | None:
        """`boot.tuning_cache`, where the log names the set."""
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
    """The section as a recipe says it; whole numbers without a fraction."""
    said = [
        {
            "line": one.line,
            **({"value": _plain(one.value), "tolerance": _plain(one.tolerance)} if one.value is not None else {}),
            **({"missing": one.missing} if one.missing != "degrade" else {}),
            "basis": one.basis or "",
        }
        for one in receipts
    ]
    return {"boot": {"receipts": said, **({"tuning_cache": tuning} if tuning else {})}}


def _plain(value: float) -> int | float:
    return int(value) if value == int(value) else value
