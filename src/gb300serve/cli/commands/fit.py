"""`gb300serve fit`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from gb300serve.app.diagnose import read_log
from gb300serve.app.fit import Fitter
from gb300serve.app.workspace import learned_boots, workspace
from gb300serve.cli.parameters import Json, RecipeDirs, Ref, Sets, SiteFile, Station
from gb300serve.cli.views.fit import lesson_lines, lines, sweep_lines
from gb300serve.fit.result import Sweep, SweepStep, fit_document, parse_sweep, sweep_document

Log = Annotated[str | None, typer.Option(metavar="FILE", help="Learn from a boot's log first.", show_default=False)]
Directory = Annotated[
    Path | None, typer.Option("--checkpoint", metavar="DIR", help="Read sizes from its files.", show_default=False)
]
Range = Annotated[str | None, typer.Option(metavar="PATH=a..b[:step]", help="One row a value.", show_default=False)]


def run(
    ctx: typer.Context,
    ref: Ref,
    sets: Sets = None,
    sweep: Range = None,
    calibrate: Log = None,
    checkpoint: Directory = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """Say whether a release fits the GPU's and the host's memory, before anything is downloaded."""
    space = workspace(ctx, recipes, site, station)
    fitter = Fitter(space, checkpoint)
    swept = parse_sweep(sweep) if sweep else None
    lesson = fitter.calibrate(*space.load(ref), calibrate, read_log(calibrate)) if calibrate else None
    found = fitter.fit(*space.load(ref, sets), sets or ())
    if lesson:
        for line in lesson_lines(lesson, str(learned_boots(space)), found.demand):
            space.console.message(line)
    steps = list(_steps(fitter, ref, sets or [], swept)) if swept else []
    if json:
        answer = fit_document(found.name, found.demand, found.answer, found.remarks)
        space.console.document(answer | ({"sweep": sweep_document(swept.path, steps)} if swept else {}))
    else:
        space.say_notes()
        for line in sweep_lines(swept, steps) if swept else lines(found):
            space.console.result(line)
    return 6 if found.verdict in ("short", "refused") else 0


def _steps(fitter: Fitter, ref: str, sets: list[str], swept: Sweep) -> Iterator[SweepStep]:
    for value, assignment in zip(swept.values, swept.assignments(), strict=True):
        changes = [*sets, assignment]
        yield SweepStep(value, fitter.answer(*fitter.space.load(ref, changes), changes))
