"""What is imported: shell text, the output of `docker inspect`, or a jm-recipe/v1 file; told by what it looks like."""

import json
import re
from collections.abc import Callable
from posixpath import join, normpath
from typing import Any, NamedTuple

from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.engines.registry import ENGINES
from gb300serve.importers.draft import Draft, ReadFile
from gb300serve.importers.inspected import from_inspect
from gb300serve.importers.jm_recipe import SCHEMA, from_jm_recipe
from gb300serve.importers.recipe import Imported, from_words
from gb300serve.importers.report import TOKEN, UNREADABLE, NotImportableError, Report, SourceInvalidError, Stop
from gb300serve.importers.shell.expand import ShellEnvironment
from gb300serve.importers.shell.mend import mended
from gb300serve.importers.shell.script import launches, read_script
from gb300serve.importers.shell.words import Marked
from gb300serve.plan.model import Plan

_AS_COMMAND = "say its image, variables, mounts and arguments as a `docker run` command, and import that"
_WHEN_STARTED = "start it, then import the container: gb300serve import --container NAME"
_BARE = "put `docker run --gpus all IMAGE` before it, with the image that has this engine"
_ENGINE = (
    r"^[ \t$>]*(?:[A-Za-z_][A-Za-z0-9_]*=\S*[ \t]+)*"
    rf"((?:{'|'.join(ENGINES)})[ \t]+serve|"
    rf"python3?[ \t]+-m[ \t]+(?:{'|'.join(re.escape(engine.module) for engine in ENGINES.values())}))\b"
)
_CLIENT = r"^[ \t$>]*(?:sudo[ \t]+)?(?:(?:docker|podman|nerdctl)[ \t]+(?:compose|exec|start|restart)|docker-compose)\b"

# The first that fits; each is looked for once, from the start of a line.
_FORMS = (
    (
        r"^format:[ \t]*[\"']?gb300serve/",
        "the text is a recipe already",
        "gb300serve lint FILE, gb300serve compile FILE",
    ),
    (r"^services:[ \t]*\r?$", "the text is a compose file", _WHEN_STARTED),
    (r"^apiVersion:[ \t]*\S", "the text is a Kubernetes manifest", _AS_COMMAND),
    (r"^\[Container\][ \t]*\r?$", "the text is a Podman unit", _AS_COMMAND),
    (
        r"^FROM[ \t]+\S",
        "the text is a Dockerfile, which says how an image is made and not how it is started",
        _AS_COMMAND,
    ),
    (_CLIENT, "the text starts a container that is described elsewhere", _WHEN_STARTED),
    (_ENGINE, "the engine is started here without a container: no image is named", _BARE),
)


def refuse_other_form(source: Marked) -> None:
    """Raises Stop where the text has no launch of docker's, and is known to be something else."""
    if launches(source.text):
        return
    for pattern, what, hint in _FORMS:
        if (found := re.search(pattern, source.text, re.MULTILINE)) is not None:
            raise Stop(what, source.place(found.start()), hint)


LONGEST = 2_000_000
LONGEST_SHELL = 250_000
"""A launch has a thousand characters, and the longest published script forty thousand."""
_JM = re.compile(rf"(?m)^[\"']?schema[\"']?\s*:\s*[\"']?{re.escape(SCHEMA)}")
NOT_JSON = "IMP021"


class Result(NamedTuple):
    """A recipe, its plan, and everything that was noticed on the way."""

    document: dict[str, Any]
    plan: Plan
    diagnostics: tuple[Diagnostic, ...]


def read_text(text: str, name: str, around: ShellEnvironment, read_file: ReadFile = lambda _: None) -> Result:
    """The recipe that a text means; raises NotImportableError (exit 4) and SourceInvalidError (exit 3)."""
    report = Report(name)
    return _result(report, lambda: _read(text, report, around, read_file))


def read_inspected(container: Any, image: Any, name: str) -> Result:
    """The recipe of a live container, its image inspected beside it (None where it is gone); raises as `read_text`."""
    report = Report(name)
    return _result(report, lambda: from_inspect(container, report, image))


def _result(report: Report, read: Callable[[], Imported]) -> Result:
    try:
        found = read()
    except Stop as stop:
        report.say(UNREADABLE, stop.reason, stop.hint, stop.place)
        first = report.clean(stop.reason)
        raise NotImportableError(
            f"{report.file} cannot be imported: {first}", report.diagnostics, report.clean(stop.hint)
        ) from stop
    return Result(found.document, found.plan, report.diagnostics)


def _read(text: str, report: Report, around: ShellEnvironment, read_file: ReadFile) -> Imported:
    for token in TOKEN.finditer(text[:LONGEST]):
        report.hide(token[0])
    if len(text) > LONGEST:
        raise Stop(f"the text is longer than {LONGEST:,} characters", None, "cut it down to the command")
    if "\0" in text:
        message = f"{report.file} is not text"
        raise SourceInvalidError(message, hint="name a shell script, the output of docker inspect or a recipe")
    if _JM.search(text):
        return from_jm_recipe(text, report, around, read_file)
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        return from_inspect(_json(text, report), report)
    if len(text) > LONGEST_SHELL:
        raise Stop(f"the text is longer than {LONGEST_SHELL:,} characters", None, "cut it down to the command")
    refuse_other_form(Marked(text))
    return from_shell(mended(text, report), report, around, read_file)


def from_shell(source: Marked, report: Report, around: ShellEnvironment, read_file: ReadFile) -> Imported:
    """The launch that a shell text means."""
    run = read_script(source, around, report)
    directory = run.expander.around.directory

    def read(path: str) -> str | None:
        there = normpath(join(directory, path))
        if there in run.files:
            return run.files[there]
        return read_file(path if path.startswith("~") or directory == around.directory else join(directory, path))

    draft = Draft(report, run.expander.references, run.exported, directory, read)
    return from_words(draft, run.words)


def _json(text: str, report: Report) -> Any:
    try:
        return json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError) as error:
        line, column = getattr(error, "lineno", 1), getattr(error, "colno", 1)
        reason = getattr(error, "msg", "nested too deeply")
        found = diagnostic(NOT_JSON, f"this is not JSON: {reason}", None, (report.file, line, column))
        hint = "save the whole output of `docker inspect NAME`, or use --container NAME"
        raise SourceInvalidError(f"{report.file} is not JSON", hint=hint, diagnostics=(found,)) from error
