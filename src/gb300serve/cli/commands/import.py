"""`gb300serve import`."""  # noqa: N999 - the verb names its module, and nobody writes an import statement for it

from pathlib import Path
from typing import Annotated, Any

import typer

from gb300serve.app.import_launch import (
    NewRelease,
    capture_script,
    import_document,
    import_launch,
    recipe_lines,
    write_release,
)
from gb300serve.cli.parameters import Json, RecipeDirs, SiteFile, Station, open_workspace
from gb300serve.cli.views.diagnostics import text_lines
from gb300serve.core.errors import CompileError
from gb300serve.importers.read import Choices
from gb300serve.importers.report import NotImportableError


def _text(flag: str, metavar: str, help_text: str) -> Any:
    return typer.Option(flag, metavar=metavar, help=help_text, show_default=False)


Source = Annotated[
    str | None,
    typer.Argument(
        metavar="[FILE]",
        help="A shell command or script, a Compose file, a unit, a manifest, docker inspect output, "
        "a configuration file or a jm-recipe/v1 file; - for standard input.",
    ),
]
Container = Annotated[str | None, _text("--container", "NAME", "A running or stopped container.")]
Service = Annotated[str | None, _text("--service", "NAME", "The service or container to import.")]
Image = Annotated[str | None, _text("--image", "IMAGE", "The image for an engine without a container.")]
Script = Annotated[str | None, _text("--script", "FILE", "The launch script of a jm-recipe.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the recipe.", show_default=False)
]
Lane = Annotated[str | None, _text("--lane", "NAME", "The lane of the recipe.")]
Release = Annotated[str | None, _text("--release", "NAME", "The release of the recipe.")]
Extends = Annotated[str | None, _text("--extends", "REF", "Write a child of this release.")]


Launch = Annotated[
    int | None,
    typer.Option("--launch", metavar="N", help="Of several servers in a text, the N-th.", show_default=False),
]
Capture = Annotated[
    bool, typer.Option("--capture", help="Print a script that records what a launch script would start.")
]


def run(
    ctx: typer.Context,
    file: Source = None,
    container: Container = None,
    service: Service = None,
    image: Image = None,
    script: Script = None,
    output: Output = None,
    lane: Lane = None,
    release: Release = None,
    extends: Extends = None,
    launch: Launch = None,
    capture: Capture = False,
    recipes: RecipeDirs = None,
    site: SiteFile = None,
    station: Station = None,
    json: Json = False,
) -> int:
    """Convert a launch of any form to a recipe. Nothing is executed."""
    workspace, console = open_workspace(ctx, recipes, site, station)
    if capture:
        console.result(capture_script().removesuffix("\n"))
        return 0
    choices, new = Choices(service, image, script, launch), NewRelease(output, lane, release, extends)
    try:
        result = import_launch(workspace, file, container, choices, new)
    except CompileError as error:
        if json:
            console.document(import_document(None, error.diagnostics))
            return error.exit_code
        console.messages(text_lines(error.diagnostics, quote=False), "dim")
        raise NotImportableError(error.message, (), error.hint or "") from error
    if output is not None:
        write_release(output, result)
    if json:
        console.document(import_document(result, result.diagnostics))
        return 0
    if output is None:
        console.results(recipe_lines(result))
    else:
        console.message(f"wrote {output}")
    console.messages(text_lines(result.diagnostics, quote=False), "dim")
    return 0
