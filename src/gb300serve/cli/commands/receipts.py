"""`gb300serve receipts`."""

from typing import Annotated

import typer

from gb300serve.app.actions import Invocation, suggesting
from gb300serve.app.hosts import Hosts
from gb300serve.app.receipts import ReceiptReport, lane_receipts, learned, log_receipts
from gb300serve.app.workspace import Workspace
from gb300serve.boot.receipts import as_recipe
from gb300serve.cli.console import TerminalConsole
from gb300serve.cli.parameters import Json, On, RecipeDirs, SiteFile, Station, open_workspace
from gb300serve.core.errors import CommandLineError, ServiceError
from gb300serve.lifecycle.recorder import RECEIPTS_SCHEMA
from gb300serve.recipe.write import to_yaml

LEARNED = "gb300serve.receipts-learned/1"


class ReceiptsUsageError(CommandLineError):
    """The arguments match none of the three forms."""

    def __init__(self) -> None:
        super().__init__(
            "receipts: unexpected arguments",
            hint="gb300serve receipts [REF], gb300serve receipts learn RUN|LOG, gb300serve receipts check REF LOG",
        )


def run(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[REF] | learn RUN|LOG | check REF LOG",
            help="Check a lane; propose receipts from a good boot; compare receipts with a good boot.",
            show_default=False,
        ),
    ] = None,
    on: On = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Check a boot against the recipe's receipts. Exit 9 if a receipt is missing or wrong."""
    workspace, console = open_workspace(ctx, recipes, site, station)
    with suggesting(Invocation(on=on, options=workspace.options)):
        match words or []:
            case ["learn", log]:
                return _learn(workspace, console, log, json=json)
            case ["check", ref, log]:
                return _check(log_receipts(workspace, ref, log), console, json=json)
            case []:
                return _show(lane_receipts(None, workspace, Hosts(workspace), on), console, json=json)
            case [ref] if ref not in {"learn", "check"}:
                return _show(lane_receipts(ref, workspace, Hosts(workspace), on), console, json=json)
            case _:
                raise ReceiptsUsageError


def _learn(workspace: Workspace, console: TerminalConsole, log: str, *, json: bool) -> int:
    lesson = learned(workspace, log)
    basis = f"learned from {log}"
    proposed = as_recipe(lesson.receipts(basis), lesson.tuning(basis))
    if json:
        console.document({"schema": LEARNED, "log": log, **proposed})
    else:
        console.result(to_yaml(proposed).rstrip("\n"))
        console.message("paste it into the recipe; its tolerances are proposals", "dim")
    return 0


def _show(kept: ReceiptReport, console: TerminalConsole, *, json: bool) -> int:
    """The receipts of a running lane."""
    if json:
        return _document(kept, console, "container")
    for one in kept.receipts:
        console.result(one.sentence())
    console.result(f"{kept.release} ({kept.where}): {_count(kept)}")
    if not kept.binding and not all(one.good for one in kept.receipts):
        console.message("--set changed this launch: receipts of changed lines are shown but do not count", "dim")
    return _exit_code(kept)


def _check(kept: ReceiptReport, console: TerminalConsole, *, json: bool) -> int:
    """The log is the measure: a receipt that it lacks is wrong in the recipe. Other arguments mean another launch."""
    if json:
        return _document(kept, console, "log")
    for one in kept.receipts:
        if one.kind == "line" and not one.good:
            console.result(f"wrong in the recipe: {one.sentence()}")
        elif one.good:
            console.result(one.sentence())
        else:
            console.message(f"the log belongs to another command: {one.sentence()}", "warning")
    console.result(f"{kept.release} ({kept.where}): {_count(kept)}")
    return _exit_code(kept)


def _document(kept: ReceiptReport, console: TerminalConsole, place: str) -> int:
    head = {"schema": RECEIPTS_SCHEMA, "release": kept.release, place: kept.where, "verdict": kept.verdict}
    console.document({**head, "receipts": [one.as_json() for one in kept.receipts]})
    return _exit_code(kept)


def _count(kept: ReceiptReport) -> str:
    return f"{sum(one.state == 'kept' for one in kept.receipts)} of {len(kept.receipts)} kept"


def _exit_code(kept: ReceiptReport) -> int:
    return 0 if kept.verdict == "kept" else ServiceError.exit_code
