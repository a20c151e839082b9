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
            help="Check a lane; propose receipts from a good boot; check the recipe against a good boot.",
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
                return _show(log_receipts(workspace, ref, log), console, json=json, is_log=True)
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


def _show(report: ReceiptReport, console: TerminalConsole, *, json: bool, is_log: bool = False) -> int:
    """`is_log`: the report is of the log of a good boot, so a receipt missing there is wrong in the recipe."""
    if json:
        place, receipts = "log" if is_log else "container", [receipt.as_json() for receipt in report.receipts]
        head = {"schema": RECEIPTS_SCHEMA, "release": report.release, place: report.where, "verdict": report.verdict}
        console.document({**head, "receipts": receipts})
        return _exit_code(report)
    for receipt in report.receipts:
        if receipt.good or not is_log:
            console.result(receipt.sentence())
        elif receipt.kind == "line":
            console.result(f"wrong in the recipe: {receipt.sentence()}")
        else:
            console.message(f"the log belongs to another command: {receipt.sentence()}", "warning")
    kept = sum(receipt.state == "kept" for receipt in report.receipts)
    console.result(f"{report.release} ({report.where}): {kept} of {len(report.receipts)} kept")
    if not report.binding and not all(receipt.good for receipt in report.receipts):
        console.message("--set changed this launch: receipts of changed lines do not count", "dim")
    return _exit_code(report)


def _exit_code(report: ReceiptReport) -> int:
    return 0 if report.verdict == "kept" else ServiceError.exit_code
