"""`gb300serve diagnose`."""

from typing import Annotated

import typer

from gb300serve.app.diagnose import diagnosed, read_log
from gb300serve.boot.diagnosis import exit_code
from gb300serve.cli.parameters import Json

_NO_PROGRESS = "the log is too short, or it is not the log of a vLLM or SGLang boot"


def run(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A boot log, complete or not; - for standard input.")],
    json: Json = False,
) -> int:
    """Explain a boot log: how far the boot got, and why it failed."""
    _, console = ctx.obj
    result = diagnosed(read_log(file))
    if json:
        console.document(result.as_json())
    else:
        for line in result.sentences():
            console.result(line)
        if not result.told:
            console.message(_NO_PROGRESS, "warning")
    return exit_code(result.diagnosis)
