"""The difference of two releases: fields, record, words of the command, costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gb300serve.compare.fields import Change, changes
from gb300serve.core.words import changed_words

# What a change of a section does to the launch.
_EFFECT = {
    "image": "another image",
    "model": "another model",
    "models": "other models",
    "container": "other container options",
    "engine": "other engine arguments",
}


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: its resolved recipe, its command's words and its plan's digest."""

    recipe: Mapping[str, Any]
    argv: tuple[str, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class Difference:
    """`changes` is what the plan is compiled from, `record` the rest of the recipe."""

    changes: tuple[Change, ...]
    record: tuple[Change, ...]
    removed: tuple[str, ...]
    added: tuple[str, ...]
    restart: bool
    """The plans differ: going from one to the other is a launch."""

    @property
    def any(self) -> bool:
        return bool(self.changes or self.record)

    def as_json(self) -> dict[str, Any]:
        """`gb300serve.diff/1`. Costs other than the restart are not known yet: their keys hold null or `unknown`."""
        return {
            "schema": "gb300serve.diff/1",
            "changes": [_document(change) | {"effect": effect(change)} for change in self.changes],
            "record": [_document(change) for change in self.record],
            "command": {"added": list(self.added), "removed": list(self.removed)},
            "costs": {
                "restart": self.restart,
                "autotune": "unknown" if self.restart else "same",
                "kv_cache_gib": [None, None],
                "boot_seconds": [None, None],
            },
        }


def difference(before: Side, after: Side) -> Difference:
    """What `after` changes against `before`."""
    found = changes(dict(before.recipe), dict(after.recipe))
    removed, added = changed_words(before.argv, after.argv)
    return Difference(
        changes=tuple(change for change in found if change.in_plan),
        record=tuple(change for change in found if not change.in_plan),
        removed=tuple(removed),
        added=tuple(added),
        restart=before.digest != after.digest,
    )


def effect(change: Change) -> str:
    """What the change does to the launch, in words."""
    return _EFFECT[change.section]


def _document(change: Change) -> dict[str, Any]:
    return {"path": change.path, "before": change.before, "after": change.after}
