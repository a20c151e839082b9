"""Recognise the format of a text (shell, YAML, a unit, `docker inspect`), and import it."""

import json
import re
from collections.abc import Callable
from posixpath import dirname, join, normpath
from typing import Any, NamedTuple

from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.importers.compose import from_compose
from gb300serve.importers.draft import Draft, ReadFile
from gb300serve.importers.inspected import from_inspect
from gb300serve.importers.jm_recipe import SCHEMA, from_jm_recipe
from gb300serve.importers.kubernetes import from_kubernetes
from gb300serve.importers.launcher import ENGINE_COMMAND, with_container
from gb300serve.importers.launches import has_launch, is_capture, read_capture, read_script
from gb300serve.importers.recipe import FromShell, ImportedRecipe, from_arguments, from_configuration
from gb300serve.importers.report import (
    TOKEN,
    UNREADABLE,
    NotImportableError,
    Report,
    SourceInvalidError,
    UnresolvedError,
)
from gb300serve.importers.shell.findings import ScriptLaunch
from gb300serve.importers.shell.mend import mend, without_prose
from gb300serve.importers.shell.words import CLOSE, OPEN, ShellEnvironment, SourceText
from gb300serve.importers.units import from_unit
from gb300serve.plan.model import Plan

_CUT = "cut it down to the command"
_AS_COMMAND = "write its image, variables, mounts and arguments as a `docker run` command, and import that"
_WHEN_STARTED = "start it, then import the container with `import --container NAME`"
_BY_ITSELF = "save it as a file of its own, and import that"
_BARE = "add --image IMAGE, with an image that contains this engine"
_CLIENT = r"^[ \t$>]*(?:sudo[ \t]+)?(?:(?:docker|podman|nerdctl)[ \t]+(?:compose|exec|start|restart)|docker-compose)\b"

# The first match counts; every pattern starts at the start of a line.
_OTHER_FORMATS = (
    (r"^format:[ \t]*[\"']?gb300serve/", "the text is already a recipe", "`compile FILE` compiles it"),
    (r"^services:[ \t]*\r?$", "the text contains a Compose file", _BY_ITSELF),
    (r"^apiVersion:[ \t]*\S", "the text contains a Kubernetes manifest", _BY_ITSELF),
    (r"^FROM[ \t]+\S", "the text is a Dockerfile: it builds an image, but does not start it", _AS_COMMAND),
    (_CLIENT, "the text starts a container that is defined elsewhere", _WHEN_STARTED),
    (ENGINE_COMMAND, "the text starts the engine without a container, so the image is missing", _BARE),
)


def reject_other_formats(source: SourceText) -> None:
    """Raises UnresolvedError if the text has no `docker run` and another known format."""
    if has_launch(source.text):
        return
    for pattern, reason, hint in _OTHER_FORMATS:
        if (match := re.search(pattern, source.text, re.MULTILINE)) is not None:
            raise UnresolvedError(reason, source.place(match.start()), hint)


class Choices(NamedTuple):
    """What the command line states about a text: a service, an image for an engine without one, a launch script."""

    service: str | None = None
    image: str | None = None
    script: str | None = None
    launch: int | None = None


NO_CHOICES = Choices()
MAX_CHARACTERS = 2_000_000
MAX_SHELL_CHARACTERS = 250_000
"""A launch has a thousand characters, the longest published script forty thousand."""
_JM = re.compile(rf"(?m)^[\"']?schema[\"']?\s*:\s*[\"']?{re.escape(SCHEMA)}")
NOT_JSON = "IMP021"


class Result(NamedTuple):
    """A recipe, its plan, and the findings of the import."""

    document: dict[str, Any]
    plan: Plan
    diagnostics: tuple[Diagnostic, ...]


def read_text(
    text: str,
    name: str,
    environment: ShellEnvironment,
    read_file: ReadFile = lambda _: None,
    choices: Choices = NO_CHOICES,
) -> Result:
    """The recipe of a text. Raises NotImportableError (exit 4) and SourceInvalidError (exit 3)."""
    report = Report(name)
    return _result(report, lambda: _read(text, report, environment, read_file, choices))


def read_inspected(container: Any, image: Any, name: str) -> Result:
    """The recipe of a container and its image (None if it was removed). Raises like `read_text`."""
    report = Report(name)
    return _result(report, lambda: from_inspect(container, report, image))


def _result(report: Report, read: Callable[[], ImportedRecipe]) -> Result:
    try:
        imported = read()
    except UnresolvedError as stop:
        report.add(UNREADABLE, stop.reason, stop.hint, stop.place)
        message = f"{report.file} cannot be imported: {report.clean(stop.reason)}"
        raise NotImportableError(message, report.diagnostics, report.clean(stop.hint)) from stop
    return Result(imported.document, imported.plan, report.diagnostics)


def _read(
    text: str, report: Report, environment: ShellEnvironment, read_file: ReadFile, choices: Choices
) -> ImportedRecipe:
    for token in TOKEN.finditer(text[:MAX_CHARACTERS]):
        report.hide(token[0])
    if len(text) > MAX_CHARACTERS:
        raise UnresolvedError(f"the text is longer than {MAX_CHARACTERS:,} characters", None, _CUT)
    if "\0" in text:
        hint = "name a shell script, a Compose file, a unit, a manifest or the output of docker inspect"
        raise SourceInvalidError(f"{report.file} is not a text file", hint=hint)
    if _JM.search(text):
        return from_jm_recipe(text, report, choices.script, read_file, _shell_reader(environment, read_file))
    if (imported := _structured(text, report, environment, read_file, choices)) is not None:
        return imported
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") and not _is_shell(text):
        value = _json(text, report)
        if is_capture(value):
            return _from_run(read_capture(value, report, choices.launch), report, environment, read_file)
        return from_inspect(value, report)
    if len(text) > MAX_SHELL_CHARACTERS:
        raise UnresolvedError(f"the text is longer than {MAX_SHELL_CHARACTERS:,} characters", None, _CUT)
    _reject_makefile(text)
    if choices.image is not None and not has_launch(text):
        return from_shell(with_container(mend(text, report), choices.image), report, environment, read_file)
    reject_other_formats(SourceText(text))
    return from_shell(mend(text, report), report, environment, read_file, choices.launch)


# A target whose commands contain a launch, and a variable of make. Bash would run `$(NAME)` as a program.
_MAKEFILE = re.compile(
    r"^(?P<target>[A-Za-z][\w.-]*)[ \t]*:(?![=/])[^\n]*\n(?:(?:\t[^\n]*)?\n)*?\t[^\n]*\bdocker\b", re.M
)


def _reject_makefile(text: str) -> None:
    """Raises UnresolvedError for the file of `make`."""
    match = _MAKEFILE.search(text)
    if match is not None and re.search(r"\$\([A-Z_][A-Z0-9_]*\)", text) and not re.match(r"\s*#!", text):
        hint = f"`make -n {match['target']}` prints its commands: import that text"
        raise UnresolvedError(
            "the text is a Makefile, whose variables make sets", SourceText(text).place(match.start()), hint
        )


_HELM = re.compile(r"^[ \t-]*\{\{-? ", re.MULTILINE)


def _structured(
    text: str, report: Report, environment: ShellEnvironment, read_file: ReadFile, choices: Choices
) -> ImportedRecipe | None:
    """The recipe of a Compose file, a manifest, a unit or a configuration file of vLLM; None for another format."""
    plain = _without_fence(text.lstrip("\ufeff").translate(_NO_MARKS))
    first = next((line for line in plain.splitlines() if line.strip() and line.strip()[:1] not in "#;"), "")
    named = report.file not in (None, "standard input")
    directory = normpath(join(environment.directory, dirname(report.file or "") if named else ""))
    draft = Draft(report, directory=directory, read_file=read_file)
    if re.fullmatch(r"\[[A-Z][A-Za-z-]*\][ \t]*", first) is not None:
        return from_unit(plain, draft, environment, _shell_reader(environment, read_file), choices.image)
    if not re.match(r"---|[\"']?[A-Za-z][\w.-]*[\"']?[ \t]*:(?:[ \t]|$)|\{\s*(?:$|\"apiVersion\")", first):
        return None
    if re.search(r"^[\"']?services[\"']?[ \t]*:", plain, re.MULTILINE):
        return from_compose(plain, draft, environment.home, choices.service)
    if re.search(r"^[\s{]*[\"']?apiVersion[\"']?[ \t]*:", plain, re.MULTILINE):
        if (template := _HELM.search(plain)) is not None:
            hint = "render the chart with `helm template`, and import the result"
            raise UnresolvedError("the text is a template of Helm", SourceText(plain).place(template.start()), hint)
        return from_kubernetes(plain, draft, choices.service)
    return None if first.startswith("{") else from_configuration(plain, draft, choices.image)


_NO_MARKS = {ord(OPEN): None, ord(CLOSE): None}


def _without_fence(text: str) -> str:
    """The text without the Markdown fence around it; the numbers of its lines stay."""
    match = re.match(r"\s*```[A-Za-z]*[ \t]*(?=\n)", text)
    if match is None:
        return text
    inner = "\n" * match[0].count("\n") + text[match.end() :]
    end = re.search(r"^```", inner, re.MULTILINE)
    return inner[: end.start()] if end else inner


def _shell_reader(environment: ShellEnvironment, read_file: ReadFile) -> FromShell:
    return lambda source, report: from_shell(source, report, environment, read_file)


def from_shell(
    source: SourceText,
    report: Report,
    shell: ShellEnvironment,
    read_file: ReadFile,
    number: int | None = None,
) -> ImportedRecipe:
    """The recipe of the launch in a shell text; `number`: that of several."""
    try:
        run = read_script(source, shell, report, read_file, number)
    except UnresolvedError:
        commands = without_prose(source, report)
        if commands is source:
            raise
        run = read_script(commands, shell, report, read_file, number)
    return _from_run(run, report, shell, read_file)


def _from_run(run: ScriptLaunch, report: Report, shell: ShellEnvironment, read_file: ReadFile) -> ImportedRecipe:
    directory = run.directory

    def read(path: str) -> str | None:
        absolute = normpath(join(directory, path))
        if absolute in run.files:
            return run.files[absolute]
        return read_file(path if path.startswith("~") or directory == shell.directory else join(directory, path))

    return from_arguments(Draft(report, run.references, run.exported, directory, read), run.words)


def _is_shell(text: str) -> bool:
    """Whether a text that begins as JSON does is a shell text that begins with a test or a group."""
    return re.match(r"\s*(?:\[\[?|\{)\s", text) is not None and has_launch(text) and not _is_json(text)


def _is_json(text: str) -> bool:
    try:
        json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return False
    return True


def _json(text: str, report: Report) -> Any:
    try:
        return json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError) as error:
        line, column = getattr(error, "lineno", 1), getattr(error, "colno", 1)
        reason = getattr(error, "msg", "nested too deeply")
        finding = diagnostic(NOT_JSON, f"this is not valid JSON: {reason}", None, (report.file, line, column))
        hint = "save the whole output of `docker inspect NAME`, or use --container NAME"
        raise SourceInvalidError(f"{report.file} is not valid JSON", hint=hint, diagnostics=(finding,)) from error
