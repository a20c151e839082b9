"""Receipts proposed from the log of a good boot: the figures that tell it from a bad one, as it printed them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gb300serve.boot.events import BootBegan, Event, Receipt, ReceiptValue
from gb300serve.boot.receipts import ExpectedLine, Policy, ReceiptBook

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
