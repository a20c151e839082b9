"""Import a launch: the recipe of a source, and findings."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gb300serve.adapters.docker.backend import raw_inspect
from gb300serve.adapters.docker.client import DockerEngine
from gb300serve.app.environment import standard_input
from gb300serve.app.hosts import Hosts
from gb300serve.app.workspace import Workspace
from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.errors import CommandLineError, RecipeError
from gb300serve.core.files import expand_user
from gb300serve.importers.draft import ReadFile
from gb300serve.importers.read import MAX_CHARACTERS, Result, read_inspected, read_text
from gb300serve.importers.report import NOT_TAKEN_OVER
from gb300serve.importers.shell.words import ShellEnvironment
from gb300serve.recipe.write import to_yaml
from gb300serve.render.docker_run import plan_document

SCHEMA = "gb300serve.import/1"
_MAX_ENV_FILE = 1 << 20  # bytes; a larger file is not an env file


class OneSourceError(CommandLineError):
    """The command line names no source or two sources."""

    def __init__(self) -> None:
        super().__init__("name one source: a file, - for standard input, or --container NAME")


class UnreadableError(RecipeError):
    """The file does not exist or cannot be read."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}", hint="name a file, or - for standard input")


def capture_script() -> str:
    """A shell script that runs a launch script with stubs in place of docker, and records the launch."""
    return Path(__file__).with_name("capture.sh").read_text(encoding="utf-8")


def import_launch(space: Workspace, file: str | None, container: str | None, number: int | None = None) -> Result:
    """The recipe of the source. Raises RecipeError (3), CompileError (4), BackendError (7)."""
    if (file is None) == (container is None):
        raise OneSourceError
    if container is not None:
        inspected, image = raw_inspect(DockerEngine(Hosts(space).endpoint), container)
        return read_inspected(inspected, image, container)
    name = "standard input" if file in ("-", None) else str(file)
    directory = Path() if file in ("-", None) else expand_user(name).parent
    environment = _shell_environment(space, None if file in ("-", None) else str(expand_user(name)))
    return read_text(_text(file or "-", name), name, environment, _reader(directory), number)


def _text(file: str, name: str) -> str:
    try:
        raw = standard_input().buffer.read(4 * MAX_CHARACTERS) if file == "-" else expand_user(file).read_bytes()
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(name, f"not UTF-8: byte {error.start} is {error.object[error.start]:#04x}") from error
    except OSError as error:
        raise UnreadableError(name, error.strerror or str(error)) from error


def _shell_environment(space: Workspace, script: str | None) -> ShellEnvironment:
    variables = space.environment.variables
    home = variables.get("HOME") or str(expand_user("~"))
    return ShellEnvironment(home, str(Path.cwd()), variables.get("USER"), script)


def _reader(directory: Path) -> ReadFile:
    def read(name: str) -> str | None:
        for path in (expand_user(name), directory / name):
            try:
                if path.is_file() and path.stat().st_size <= _MAX_ENV_FILE:
                    return path.read_text(encoding="utf-8-sig")
            except (OSError, ValueError):
                continue
        return None

    return read


def import_document(result: Result | None, diagnostics: tuple[Diagnostic, ...]) -> dict[str, Any]:
    """`gb300serve.import/1`; recipe and plan are null if the import failed."""
    recipe, plan = (result.document, plan_document(result.plan)) if result else (None, None)
    findings = [finding.as_json() for finding in diagnostics]
    return {"schema": SCHEMA, "recipe": recipe, "plan": plan, "diagnostics": findings}


def finding_lines(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    """The findings without their source lines: a pasted line may contain a secret."""
    for finding in diagnostics:
        place = ":".join(str(part) for part in (finding.file, finding.line, finding.column) if part is not None)
        yield f"{place}: {finding.severity} {finding.code} {finding.name}: {finding.message}"
        if finding.hint:
            yield f"    hint: {finding.hint}"


def recipe_lines(result: Result) -> Iterator[str]:
    """The recipe as YAML, with the losses as comments at its top."""
    for finding in result.diagnostics:
        if finding.code == NOT_TAKEN_OVER:
            line = f"line {finding.line}: " if finding.line else ""
            yield f"# not taken over: {line}{' '.join(finding.message.split())}"
    yield to_yaml(result.document).removesuffix("\n")
