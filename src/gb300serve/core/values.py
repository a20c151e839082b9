"""Values as the recipe wrote them: numbers keep their spelling, JSON is printed compactly."""

import json
from collections.abc import Mapping, Sequence
from typing import Self, TypeAlias


class WrittenFloat(float):
    """A decimal fraction that remembers how it was written: `0.90` prints as `0.90`, also inside JSON."""

    text: str

    def __new__(cls, text: str) -> Self:
        value = super().__new__(cls, text)
        value.text = text
        return value

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


Scalar: TypeAlias = str | int | float | bool | None
Value: TypeAlias = "Scalar | Sequence[Value] | Mapping[str, Value]"


def compact_json(value: Value) -> str:
    """JSON without blanks, keys in the order given, characters outside ASCII as they are, numbers as written."""
    if isinstance(value, WrittenFloat):
        return value.text
    if isinstance(value, str) or value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(key, ensure_ascii=False)}:{compact_json(item)}" for key, item in value.items())
        return "{" + ",".join(pairs) + "}"
    return "[" + ",".join(map(compact_json, value)) + "]"
