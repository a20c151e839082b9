"""`gb300serve import`."""  # noqa: N999 - the verb names its module, and nobody writes an import statement for it

from typing import Annotated

import typer

from gb300serve.app.import_launch import capture_script, finding_lines, import_document, import_launch, recipe_lines
from gb300serve.cli.parameters import Json, SiteFile, Station, open_workspace
from gb300serve.core.errors import CompileError
from gb300serve.importers.report import NotImportableError


def run(
    ctx: typer.Context,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="A shell command, docker inspect output or a jm-recipe/v1 file; - for standard input.",
        ),
    ] = None,
    container: Annotated[
        str | None,
        typer.Option("--container", metavar="NAME", help="A running or stopped container.", show_default=False),
    ] = None,
    launch: Annotated[
        int | None,
        typer.Option("--launch", metavar="N", help="Of several servers in a text, the N-th.", show_default=False),
    ] = None,
    capture: Annotated[
        bool,
        typer.Option("--capture", help="Print a script that records what a launch script would start."),
    ] = False,
    site: SiteFile = None,
    station: Station = None,
    json: Json = False,
) -> int:
    """Convert a docker run command, a container or a jm-recipe to a recipe. Nothing is executed."""
    workspace, console = open_workspace(ctx, None, site, station)
    if capture:
        console.result(capture_script().removesuffix("\n"))
        return 0
    try:
        result = import_launch(workspace, file, container, launch)
    except CompileError as error:
        if json:
            console.document(import_document(None, error.diagnostics))
            return error.exit_code
        console.messages(finding_lines(error.diagnostics), "dim")
        raise NotImportableError(error.message, (), error.hint or "") from error
    if json:
        console.document(import_document(result, result.diagnostics))
        return 0
    console.results(recipe_lines(result))
    console.messages(finding_lines(result.diagnostics), "dim")
    return 0
