"""`gb300serve receipts`."""

from typing import Annotated

import typer

from gb300serve.app.receipts import Kept, learned, of_lane, of_log
from gb300serve.app.services import Services
from gb300serve.app.workspace import Workspace, workspace
from gb300serve.boot.receipts import as_recipe
from gb300serve.cli.parameters import Json, On, RecipeDirs, SiteFile, Station
from gb300serve.core.errors import CommandLineError, ServiceError
from gb300serve.lifecycle.recorder import RECEIPTS_SCHEMA
from gb300serve.recipe.write import to_yaml

LEARNED = "gb300serve.receipts-learned/1"


class ReceiptsUsageError(CommandLineError):
    """The words are none of the three forms."""

    def __init__(self) -> None:
        super().__init__(
            "these words mean nothing to receipts",
            hint="gb300serve receipts [REF], receipts learn RUN|LOG, receipts check REF LOG",
        )


def run(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[REF] | learn RUN|LOG | check REF LOG",
            help="What a lane's boot showed; receipts proposed from a good boot; receipts held against a good boot.",
            show_default=False,
        ),
    ] = None,
    on: On = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Whether a boot showed what a good one shows. Exit 9 where a receipt was not kept, or is wrong."""
    space = workspace(ctx, recipes, site, station)
    match words or []:
        case ["learn", log]:
            return _learn(space, log, json=json)
        case ["check", ref, log]:
            return _check(of_log(space, ref, log), space, json=json)
        case []:
            return _show(of_lane(Services(space), None, on), space, json=json)
        case [ref] if ref not in {"learn", "check"}:
            return _show(of_lane(Services(space), ref, on), space, json=json)
        case _:
            raise ReceiptsUsageError


def _learn(space: Workspace, log: str, *, json: bool) -> int:
    lesson = learned(space, log)
    basis = f"learned from {log}"
    proposed = as_recipe(lesson.receipts(basis), lesson.tuning(basis))
    if json:
        space.console.document({"schema": LEARNED, "log": log, **proposed})
    else:
        space.console.result(to_yaml(proposed).rstrip("\n"))
        space.console.message("paste it into the recipe; its tolerances are proposals", "dim")
    return 0


def _show(kept: Kept, space: Workspace, *, json: bool) -> int:
    """What a lane's boot showed."""
    if json:
        return _document(kept, space, "container")
    for one in kept.receipts:
        space.console.result(one.sentence())
    space.console.result(f"{kept.release} ({kept.where}): {_count(kept)}")
    if not kept.binding and not all(one.good for one in kept.receipts):
        space.console.message("--set changed this launch: lines that it changes do not count against it", "dim")
    return _exit_code(kept)


def _check(kept: Kept, space: Workspace, *, json: bool) -> int:
    """The log is the measure: what it lacks is wrong in the recipe. Other arguments say that it was another launch."""
    if json:
        return _document(kept, space, "log")
    for one in kept.receipts:
        if one.kind == "line" and not one.good:
            space.console.result(f"wrong: a good boot lacks it; {one.sentence()}")
        elif one.good:
            space.console.result(one.sentence())
        else:
            space.console.message(f"the log is of another command: {one.sentence()}", "warning")
    space.console.result(f"{kept.release} ({kept.where}): {_count(kept)}")
    return _exit_code(kept)


def _document(kept: Kept, space: Workspace, place: str) -> int:
    head = {"schema": RECEIPTS_SCHEMA, "release": kept.release, place: kept.where, "verdict": kept.verdict}
    space.console.document({**head, "receipts": [one.as_json() for one in kept.receipts]})
    return _exit_code(kept)


def _count(kept: Kept) -> str:
    return f"{sum(one.state == 'kept' for one in kept.receipts)} of {len(kept.receipts)} kept"


def _exit_code(kept: Kept) -> int:
    return 0 if kept.verdict == "kept" else ServiceError.exit_code
