"""`gb300serve diagnose`."""

from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from gb300serve.boot.diagnosis import Diagnosis, exit_code
from gb300serve.boot.machine import BootMachine
from gb300serve.cli.boot_log import read_log
from gb300serve.cli.parameters import Json


def run(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A boot log, whole or cut; - for standard input.")],
    json: Json = False,
) -> int:
    """Say what became of a boot, from its log."""
    _, console = ctx.obj
    diagnosis = diagnosed(read_log(file))
    if json:
        console.document(diagnosis.as_json())
    else:
        for line in _sentences(diagnosis):
            console.result(line)
    return exit_code(diagnosis)


def diagnosed(lines: Iterable[str]) -> Diagnosis:
    """The diagnosis of a log, line by line."""
    machine = BootMachine()
    for line in lines:
        machine.feed(line)
    return machine.result()


def _sentences(diagnosis: Diagnosis) -> Iterator[str]:
    reason = f": {diagnosis.reason}" if diagnosis.reason else ""
    yield f"{diagnosis.state} in {diagnosis.phase}{reason}"
    yield from (f"  line {item.line}: {item.text}" for item in diagnosis.evidence)
    yield from (f"  {name}: {value}" for name, value in diagnosis.values.items())
    yield from (f"  {advice}" for advice in diagnosis.advice)
    yield from (f"  {phase.value:18} {seconds:8.1f} s" for phase, seconds in diagnosis.phases)
