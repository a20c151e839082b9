"""`gb300serve diagnose`."""

from typing import Annotated

import typer

from gb300serve.app.diagnose import diagnosed, read_log
from gb300serve.boot.diagnosis import exit_code
from gb300serve.cli.parameters import Json

_UNTOLD = "the log is too short, or it is not an engine log"


def run(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A boot log, whole or cut; - for standard input.")],
    json: Json = False,
) -> int:
    """Say what became of a boot, from its log."""
    _, console = ctx.obj
    found = diagnosed(read_log(file))
    if json:
        console.document(found.as_json())
    else:
        for line in found.sentences():
            console.result(line)
        if not found.told:
            console.message(_UNTOLD, "warning")
    return exit_code(found.diagnosis)
