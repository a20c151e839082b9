"""The difference of two releases: launch fields, record, command arguments, costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from gb300serve.autotune.identity import Change, changes, effect_of
from gb300serve.compare.costs import Costs, ReleaseSummary, costs, effect_sentence
from gb300serve.core.values import changed_items


@dataclass(frozen=True, slots=True)
class Side:
    """One release: `lane/release`, its resolved recipe, its command, the digest of its plan, and the facts about it."""

    ref: str
    recipe: Mapping[str, Any]
    command: tuple[tuple[str, ...], ...]
    """Arguments; each option with its values."""
    digest: str
    facts: ReleaseSummary = field(default_factory=ReleaseSummary)


@dataclass(frozen=True, slots=True)
class Difference:
    """`changes` are fields that the plan is compiled from, `record` the other fields of the recipe."""

    before: Side
    after: Side
    changes: tuple[Change, ...]
    effects: tuple[str, ...]
    """The effect of each change, in the order of `changes`."""
    record: tuple[Change, ...]
    removed: tuple[tuple[str, ...], ...]
    """Options with their values."""
    added: tuple[tuple[str, ...], ...]
    costs: Costs

    @property
    def any(self) -> bool:
        return bool(self.changes or self.record)

    def as_json(self) -> dict[str, Any]:
        """`gb300serve.diff/1`; unknown values are null or `unknown`."""
        removed, added = changed_items(_arguments(self.before), _arguments(self.after))
        described = zip(self.changes, self.effects, strict=True)
        return {
            "schema": "gb300serve.diff/1",
            "a": self.before.ref,
            "b": self.after.ref,
            "changes": [_document(change) | {"effect": effect} for change, effect in described],
            "record": [_document(change) for change in self.record],
            "command": {"added": added, "removed": removed},
            "costs": self.costs.as_json(),
        }


def difference(before: Side, after: Side) -> Difference:
    """The changes from `before` to `after`, and their cost."""
    differing = changes(dict(before.recipe), dict(after.recipe))
    launched = tuple(change for change in differing if change.in_plan)
    engine = str(after.recipe.get("engine", {}).get("name", "vllm"))
    effects = [effect_of(change, after.facts.engine_version, engine) for change in launched]
    removed, added = changed_items(before.command, after.command)
    spent = costs(before.facts, after.facts, effects, restart=before.digest != after.digest)
    by_record = before.facts.recorded is not None and after.facts.recorded is not None
    return Difference(
        before=before,
        after=after,
        changes=launched,
        effects=tuple(effect_sentence(effect, spent.tuning, by_record=by_record) for effect in effects),
        record=tuple(change for change in differing if not change.in_plan),
        removed=tuple(removed),
        added=tuple(added),
        costs=spent,
    )


def _arguments(side: Side) -> list[str]:
    return list(chain.from_iterable(side.command))


def _document(change: Change) -> dict[str, Any]:
    return {"path": change.path, "before": change.before, "after": change.after}
