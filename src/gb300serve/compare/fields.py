"""Fields of two resolved recipes that differ. A list counts as one field."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gb300serve.core.values import compact_json
from gb300serve.recipe.model import PLAN_SECTIONS

_ABSENT = object()

# How a resolved recipe came about, not what it is.
_NOT_COMPARED = frozenset({"format", "extends"})


@dataclass(frozen=True, slots=True)
class Change:
    """One field. `before` and `after` are values as written, None where it is absent."""

    path: str
    before: Any
    after: Any

    @property
    def section(self) -> str:
        return self.path.partition(".")[0]

    @property
    def in_plan(self) -> bool:
        """Is the plan compiled from it? The rest is the release's record."""
        return self.section in PLAN_SECTIONS


def changes(before: dict[str, Any], after: dict[str, Any]) -> tuple[Change, ...]:
    """Every differing field, in the order of `before`, then what only `after` has."""
    return tuple(change for change in _walk(before, after, ()) if change.section not in _NOT_COMPARED)


def _walk(before: Any, after: Any, path: tuple[str, ...]) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in (*before, *(key for key in after if key not in before)):
            yield from _walk(before.get(key, _ABSENT), after.get(key, _ABSENT), (*path, key))
    elif isinstance(before, dict) and after is _ABSENT:
        yield from _walk(before, {}, path) if before else iter((_change(path, before, after),))
    elif isinstance(after, dict) and before is _ABSENT:
        yield from _walk({}, after, path) if after else iter((_change(path, before, after),))
    elif _spelling(before) != _spelling(after):
        yield _change(path, before, after)


def _change(path: tuple[str, ...], before: Any, after: Any) -> Change:
    words = (f'["{word}"]' if "." in word else word for word in path)
    return Change(".".join(words), _shown(before), _shown(after))


def _shown(value: Any) -> Any:
    return None if value is _ABSENT else value


def _spelling(value: Any) -> str | None:
    """Two values are the same when they are written alike: `0.9` and `0.90` compile to different words."""
    return None if value is _ABSENT else compact_json(value)
