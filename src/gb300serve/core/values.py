"""Values of a recipe: fractions keep their spelling, also when they are printed as JSON."""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias, TypeVar

EngineName: TypeAlias = Literal["vllm", "sglang"]
"""The engines that a recipe may name; `engines.registry` has one row for each."""


class WrittenFloat(float):
    """A decimal fraction that keeps its spelling: `0.90` prints as `0.90`, also in JSON."""

    text: str

    def __new__(cls, text: str) -> Self:
        value = super().__new__(cls, text)
        value.text = text
        return value

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


Item = TypeVar("Item")
Scalar: TypeAlias = str | int | float | bool | None
Value: TypeAlias = "Scalar | Sequence[Value] | Mapping[str, Value]"


def indented_json(value: object, margin: str = "") -> str:
    """JSON, indented by two spaces; numbers as written, values that JSON does not have as text."""
    inner = f"{margin}  "
    if isinstance(value, Mapping):
        lines = [
            f"{json.dumps(str(key), ensure_ascii=False)}: {indented_json(item, inner)}" for key, item in value.items()
        ]
        return _block("{", lines, "}", margin)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _block("[", [indented_json(item, inner) for item in value], "]", margin)
    return value.text if isinstance(value, WrittenFloat) else json.dumps(value, ensure_ascii=False, default=str)


def _block(opening: str, lines: Sequence[str], closing: str, margin: str) -> str:
    if not lines:
        return opening + closing
    content = ",\n".join(f"{margin}  {line}" for line in lines)
    return f"{opening}\n{content}\n{margin}{closing}"


def compact_json(value: Value) -> str:
    """JSON without spaces; keys keep their order, numbers their spelling, and non-ASCII text is not escaped."""
    if isinstance(value, WrittenFloat):
        return value.text
    if isinstance(value, str) or value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(key, ensure_ascii=False)}:{compact_json(item)}" for key, item in value.items())
        return "{" + ",".join(pairs) + "}"
    return "[" + ",".join(map(compact_json, value)) + "]"


def changed_items(before: Sequence[Item], after: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """The items (arguments, or options with their values) that were removed and added, in order."""
    removed: list[Item] = []
    added: list[Item] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, first, last, start, end in matcher.get_opcodes():
        if kind != "equal":
            removed += before[first:last]
            added += after[start:end]
    return removed, added


@dataclass(frozen=True, slots=True)
class Missing:
    """`why` is a clause without a full stop. `asked` is False where asking this machine would say nothing."""

    why: str
    asked: bool = True
