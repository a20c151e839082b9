"""`gb300serve fit`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from gb300serve.app.diagnose import read_log
from gb300serve.app.fit import Fitter, WrittenSizes
from gb300serve.app.workspace import Workspace, learned_boots
from gb300serve.cli.parameters import Json, RecipeDirs, Ref, Sets, SiteFile, Station, open_workspace
from gb300serve.cli.views.fit import lesson_lines, lines, sweep_lines, written_lines
from gb300serve.core.errors import CommandLineError
from gb300serve.fit.result import Sweep, SweepStep, fit_document, parse_sweep, sweep_document

Log = Annotated[
    str | None, typer.Option(metavar="FILE", help="Learn the overhead from a boot log first.", show_default=False)
]
Directory = Annotated[
    Path | None,
    typer.Option("--checkpoint", metavar="DIR", help="Read the sizes from this local checkpoint.", show_default=False),
]
Range = Annotated[
    str | None, typer.Option(metavar="PATH=a..b[:step]", help="Print one row per value.", show_default=False)
]


def run(
    ctx: typer.Context,
    ref: Ref,
    sets: Sets = None,
    sweep: Range = None,
    calibrate: Log = None,
    checkpoint: Directory = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the sizes of --checkpoint into the recipe; shows the changes.")
    ] = False,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Predict whether a release fits GPU and host memory, before anything is downloaded."""
    workspace, console = open_workspace(ctx, recipes, site, station)
    fitter = Fitter(workspace, checkpoint)
    written = _write(fitter, ref, sets) if write else None
    swept = parse_sweep(sweep) if sweep else None
    lesson = fitter.calibrate(*workspace.load(ref), calibrate, read_log(calibrate)) if calibrate else None
    fitted = fitter.fit(*workspace.load(ref, sets), sets or ())
    if lesson:
        console.messages(lesson_lines(lesson, str(learned_boots(workspace)), fitted.request))
    steps = list(_steps(workspace, fitter, ref, sets or [], swept)) if swept else []
    if json:
        result = fit_document(fitted.name, fitted.request, fitted.result or fitted.recorded, fitted.remarks, fitted.gpu)
        result |= {"sweep": sweep_document(swept.path, steps)} if swept else {}
        console.document(result | ({"written": written.as_json()} if written else {}))
    else:
        workspace.print_notes()
        console.results(written_lines(written) if written else ())
        console.results(sweep_lines(swept, steps) if swept else lines(fitted))
    if fitted.verdict in ("short", "refused"):
        return 6
    return 5 if any(remark.severity == "error" for remark in fitted.remarks) else 0


def _write(fitter: Fitter, ref: str, sets: Sets) -> WrittenSizes:
    if fitter.directory is None or sets:
        hint = "write the sizes of a checkpoint, without --set: fit REF --checkpoint DIR --write"
        raise CommandLineError("--write requires --checkpoint" if not sets else "--write excludes --set", hint=hint)
    return fitter.write(*fitter.space.load(ref), fitter.directory)


def _steps(workspace: Workspace, fitter: Fitter, ref: str, sets: list[str], swept: Sweep) -> Iterator[SweepStep]:
    for value, assignment in zip(swept.values, swept.assignments(), strict=True):
        changes = [*sets, assignment]
        yield SweepStep(value, fitter.result(*workspace.load(ref, changes), changes))
