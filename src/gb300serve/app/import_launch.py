"""Importing for the command line: where the text comes from, what stands around it, and the recipe as it is printed."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gb300serve.adapters.docker.backend import raw_inspect
from gb300serve.adapters.docker.client import DockerEngine
from gb300serve.app.services import Services
from gb300serve.app.workspace import Workspace, standard_input
from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.errors import CommandLineError, RecipeError
from gb300serve.core.files import expand_user
from gb300serve.importers.draft import ReadFile
from gb300serve.importers.read import LONGEST, Result, read_inspected, read_text
from gb300serve.importers.report import NOT_TAKEN
from gb300serve.importers.shell.expand import ShellEnvironment
from gb300serve.recipe.write import to_yaml
from gb300serve.render.docker_run import plan_document

SCHEMA = "gb300serve.import/1"
# An env file holds a few variables; what is larger is none.
_LARGEST_ENV_FILE = 1 << 20


class OneSourceError(CommandLineError):
    """Neither a file nor a container is named, or both are."""

    def __init__(self) -> None:
        super().__init__("name one source: a file, - for standard input, or --container NAME")


class UnreadableError(RecipeError):
    """The file is not there or cannot be read."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}", hint="name a file, or - for standard input")


def imported(space: Workspace, file: str | None, container: str | None) -> Result:
    """The recipe that the source means; raises RecipeError (3), CompileError (4), BackendError (7)."""
    if (file is None) == (container is None):
        raise OneSourceError
    if container is not None:
        inspected, image = raw_inspect(DockerEngine(Services(space).endpoint), container)
        return read_inspected(inspected, image, container)
    name = "standard input" if file in ("-", None) else str(file)
    beside = Path() if file in ("-", None) else expand_user(name).parent
    return read_text(_text(file or "-", name), name, _around(space), _reader(beside))


def _text(file: str, name: str) -> str:
    try:
        raw = standard_input().buffer.read(4 * LONGEST) if file == "-" else expand_user(file).read_bytes()
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(name, f"not UTF-8: byte {error.start} is {error.object[error.start]:#04x}") from error
    except OSError as error:
        raise UnreadableError(name, error.strerror or str(error)) from error


def _around(space: Workspace) -> ShellEnvironment:
    variables = space.environment.variables
    return ShellEnvironment(variables.get("HOME") or str(expand_user("~")), str(Path.cwd()), variables.get("USER"))


def _reader(beside: Path) -> ReadFile:
    """Files that the text names lie where it is run, or beside it."""

    def read(name: str) -> str | None:
        for path in (expand_user(name), beside / name):
            try:
                if path.is_file() and path.stat().st_size <= _LARGEST_ENV_FILE:
                    return path.read_text(encoding="utf-8-sig")
            except (OSError, ValueError):
                continue
        return None

    return read


def document(result: Result | None, diagnostics: tuple[Diagnostic, ...]) -> dict[str, Any]:
    """`gb300serve.import/1`; recipe and plan are null where nothing could be imported."""
    found = [one.as_json() for one in diagnostics]
    if result is None:
        return {"schema": SCHEMA, "recipe": None, "plan": None, "diagnostics": found}
    return {"schema": SCHEMA, "recipe": result.document, "plan": plan_document(result.plan), "diagnostics": found}


def found_lines(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    """The findings, without the lines that they speak of: a pasted line may hold a secret, and is not shown again."""
    for one in diagnostics:
        place = ":".join(str(part) for part in (one.file, one.line, one.column) if part is not None)
        yield f"{place}: {one.severity} {one.code} {one.name}: {one.message}"
        if one.hint:
            yield f"    hint: {one.hint}"


def recipe_lines(result: Result) -> Iterator[str]:
    """The recipe as YAML, headed by what was not taken over."""
    for one in result.diagnostics:
        if one.code == NOT_TAKEN:
            where = f"line {one.line}: " if one.line else ""
            yield f"# not taken over: {where}{' '.join(one.message.split())}"
    yield to_yaml(result.document).removesuffix("\n")
