"""`gb300serve diff`."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from gb300serve.cli.parameters import Json, RecipeDirs, Ref, Sets, SiteFile
from gb300serve.cli.workspace import Workspace, workspace
from gb300serve.compare.diff import Difference, Side, difference, effect
from gb300serve.compare.fields import Change
from gb300serve.core.values import compact_json
from gb300serve.plan.document import digest
from gb300serve.render.docker_run import docker_argv, quote


def run(
    ctx: typer.Context,
    before: Ref,
    after: Ref,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 5 when there is a difference.")] = False,
    sets: Sets = None,
    site: SiteFile = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Show what the second release changes against the first; --set changes the second."""
    space = workspace(ctx, recipes, site)
    found = difference(_side(space, before, None), _side(space, after, sets))
    if json:
        space.console.document(found.as_json())
    else:
        space.say_notes()
        for line in _lines(found):
            space.console.result(line)
    return 5 if exit_code and found.any else 0


def _side(space: Workspace, ref: str, sets: list[str] | None) -> Side:
    loaded, recipe = space.load(ref, sets)
    plan = space.compile(loaded, recipe)
    return Side(loaded.root, docker_argv(plan), digest(plan))


def _lines(found: Difference) -> Iterator[str]:
    if not found.any:
        yield "no difference"
        return
    yield from (f"{_change(change)}  ({effect(change)})" for change in found.changes)
    if found.removed or found.added:
        yield "command:"
        yield from (f"  - {quote(word)}" for word in found.removed)
        yield from (f"  + {quote(word)}" for word in found.added)
    if found.record:
        yield "record:"
        yield from (f"  {_change(change)}" for change in found.record)
    yield "a restart is needed" if found.restart else "the launch is the same: no restart"


def _change(change: Change) -> str:
    return f"{change.path}: {_value(change.before)} → {_value(change.after)}"


def _value(value: Any) -> str:
    text = "absent" if value is None else compact_json(value)
    return text if len(text) <= 100 else f"{text[:97]}…"
