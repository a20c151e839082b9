"""`gb300serve diagnose`."""

import sys
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from gb300serve.boot.diagnosis import Diagnosis, exit_code
from gb300serve.boot.machine import BootMachine
from gb300serve.cli.parameters import Json
from gb300serve.core.errors import CommandLineError
from gb300serve.core.files import expanded


class LogUnreadableError(CommandLineError):
    """The log cannot be opened."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}", hint="gb300serve diagnose FILE, or - for standard input")


def run(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A boot log, whole or cut; - for standard input.")],
    json: Json = False,
) -> int:
    """Say what became of a boot, from its log."""
    _, console = ctx.obj
    diagnosis = diagnosed(_lines(file))
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


def _lines(file: str) -> Iterator[str]:
    source = sys.stdin.fileno() if file == "-" else expanded(file)
    try:
        # A carriage return does not end a line: numbers are those of `grep -n`.
        with open(source, encoding="utf-8", errors="replace", newline="\n") as log:  # noqa: PTH123 - standard input has no path
            yield from log
    except OSError as error:
        raise LogUnreadableError(file, error.strerror or str(error)) from error


def _sentences(diagnosis: Diagnosis) -> Iterator[str]:
    reason = f": {diagnosis.reason}" if diagnosis.reason else ""
    yield f"{diagnosis.state} in {diagnosis.phase}{reason}"
    yield from (f"  line {item.line}: {item.text}" for item in diagnosis.evidence)
    yield from (f"  {name}: {value}" for name, value in diagnosis.values.items())
    yield from (f"  {advice}" for advice in diagnosis.advice)
    yield from (f"  {phase.value:18} {seconds:8.1f} s" for phase, seconds in diagnosis.phases)
