"""`container.gpus`: all, a count, or GPUs by name, UUID or index."""

from dataclasses import dataclass
from typing import Any, Literal


def _one_key(key: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {key: value}, "required": [key], "maxProperties": 1}


GPUS_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"const": "all"},
        {"type": "integer", "minimum": 1},
        _one_key("name", {"type": "string", "minLength": 1}),
        _one_key("uuid", {"type": ["string", "array"], "items": {"type": "string"}, "minItems": 1, "minLength": 1}),
        _one_key("index", {"type": ["integer", "array"], "items": {"type": "integer", "minimum": 0}, "minItems": 1}),
        {"type": "null"},
    ]
}
GPU_FORMS = "all, a count, {name: GB300}, {uuid: GPU-…} or {index: [0]}"


@dataclass(frozen=True, slots=True)
class Gpus:
    """`values` is empty for `all`, one number for `count`, else names, UUIDs or indexes."""

    by: Literal["all", "count", "name", "uuid", "index"]
    values: tuple[str | int, ...] = ()


def parse_gpus(value: Any) -> Gpus | None:
    """Parse `container.gpus`; raises ValueError, which lists the valid forms."""
    if value is None or isinstance(value, Gpus):
        return value
    if value == "all":
        return Gpus("all")
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return Gpus("count", (value,))
    if isinstance(value, dict) and len(value) == 1:
        return _by_key(*next(iter(value.items())))
    raise ValueError(f"write {GPU_FORMS}")


def _by_key(key: str, value: Any) -> Gpus:
    items = value if isinstance(value, list) else [value]
    if key == "name" and isinstance(value, str) and value:
        return Gpus("name", (value,))
    if key == "uuid" and items and all(isinstance(item, str) and item for item in items):
        return Gpus("uuid", tuple(items))
    if key == "index" and items and all(type(item) is int and item >= 0 for item in items):
        return Gpus("index", tuple(items))
    raise ValueError(f"write {GPU_FORMS}")
