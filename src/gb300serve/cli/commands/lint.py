"""`gb300serve lint`."""

from typing import Annotated, Literal

import typer

from gb300serve.app.lint import Verdict, described, lint_paths
from gb300serve.cli.parameters import Json, RecipeDirs, open_workspace
from gb300serve.cli.views import diagnostics
from gb300serve.core.diagnostics import RANK

SCHEMA = "gb300serve.lint/1"


def run(
    ctx: typer.Context,
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH]...", help="Files, directories or releases.")
    ] = None,
    form: Annotated[
        Literal["text", "json", "github", "sarif"], typer.Option("--format", help="The output format.")
    ] = "text",
    fail_on: Annotated[
        Literal["error", "warning", "note"], typer.Option(help="The lowest severity that exits with 5.")
    ] = "error",
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Check recipes for mistakes; needs no GPU. Without a path, check the recipes directory."""
    workspace, console = open_workspace(ctx, recipes, None)
    verdict = lint_paths(workspace, paths or [])
    if json or form == "json":
        found = [d.as_json() for d in verdict.diagnostics]
        console.document({"schema": SCHEMA, "files": verdict.files, "diagnostics": found})
    elif form == "sarif":
        console.document(diagnostics.document(verdict.diagnostics, _explained()))
    else:
        lines = diagnostics.text_lines if form == "text" else diagnostics.github_lines
        console.results(lines(verdict.diagnostics))
        console.message(_summary(verdict))
    if verdict.invalid:
        return 3
    return 5 if any(RANK[d.severity] >= RANK[fail_on] for d in verdict.diagnostics) else 0


def _explained() -> dict[str, diagnostics.Help]:
    keys = diagnostics.Help._fields
    return {row["code"]: diagnostics.Help(*(row[key] for key in keys)) for row in described()}


def _summary(verdict: Verdict) -> str:
    if not verdict.files:
        return "0 files: no YAML file contains `format: gb300serve/…`"
    counts = dict.fromkeys(("error", "warning", "note"), 0)
    for found in verdict.diagnostics:
        counts[found.severity] += 1
    parts = [f"{count} {severity}{'' if count == 1 else 's'}" for severity, count in counts.items()]
    return f"{verdict.files} {'file' if verdict.files == 1 else 'files'}: {', '.join(parts)}"
