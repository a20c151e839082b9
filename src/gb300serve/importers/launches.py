"""The launches of a shell text: which of them serves a model, and which is imported."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gb300serve.core.text import find_placeholder
from gb300serve.engines.registry import ENGINES
from gb300serve.importers.docker_arguments import RunArguments, find_image, split_arguments
from gb300serve.importers.draft import ReadFile
from gb300serve.importers.launcher import engine_titles, find_launcher, image_repository, served, shell_text
from gb300serve.importers.report import (
    BY_CAPTURE,
    LEFT_OUT,
    MENDED,
    NOT_TAKEN_OVER,
    UNREADABLE,
    UNSET,
    Report,
    SourceInvalidError,
    TextPosition,
    UnresolvedError,
    shorten,
)
from gb300serve.importers.shell.expand import Expander
from gb300serve.importers.shell.findings import Dependence, Findings, ScriptLaunch
from gb300serve.importers.shell.programs import find_program
from gb300serve.importers.shell.script import UNLISTED, Shell
from gb300serve.importers.shell.words import ExpandedWord, ShellEnvironment, SourceText, Word

CLIENTS = frozenset(("docker", "podman", "nerdctl", "nvidia-docker"))
_CLIENT = re.compile(r"\b(?:docker|podman|nerdctl)\b")
_VERB = re.compile(r"\b(?:run|create)\b")
_LAUNCH = re.compile(r"\b(?:docker|podman|nerdctl)(?:[ \t]+container)?[ \t]+(?:run|create)\b")
_ENGINES = ("DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST")
_VALUED = frozenset(("--context", "-c", "-H", "--host", "--config", "-l", "--log-level", "--connection", "--namespace"))
_CONTINUES = re.compile(r"-|[{\[]|/[A-Za-z]|[\w.-]+(?:[:/][\w.-]+)*/[\w.-]+[:@][\w.:@-]+$")
_NO_LAUNCH_HINT = "use a `docker run` command, the output of `docker inspect`, or --container NAME"
_IMAGE_PLACEHOLDER = re.compile(
    rf"[<\[{{].*|.*[>\]]|.*_HERE|REPLACE.*|(?:YOUR|MY|THE|DOCKER|{'|'.join(ENGINES).upper()})?_?IMAGE"
    r"(?:_?(?:NAME|TAG|ID|URL))?(?:[:@].*)?",
    re.DOTALL,
)
_LOST_LINE = re.compile(r"\n[ \t]*-{1,2}[a-z][\w-]+")


class _Server(NamedTuple):
    """A launch, and what it runs: an engine of a recipe, or something else by name. Neither: it is not known."""

    launch: ScriptLaunch
    arguments: RunArguments
    engine: str | None
    other: str | None

    @property
    def name(self) -> str:
        """How the reader recognises it."""
        named = (option.value for option in self.arguments.options if option.name == "name" and option.value)
        image = self.arguments.image
        return next(named, None) or (image.text if image else "a container without an image")


def has_launch(text: str) -> bool:
    """Whether the text may contain a launch."""
    client = _CLIENT.search(text)
    return client is not None and _VERB.search(text, client.end()) is not None


def find_quoted_launch(source: SourceText) -> TextPosition | None:
    """The position of a launch that bash does not run: in quotes, in a here-document or in a comment."""
    match = _LAUNCH.search(source.text)
    return source.place(match.start()) if match else None


def find_client(texts: Sequence[str]) -> int | None:
    """The index of `docker` in `docker … run`, after wrappers and assignments; None for another command."""
    at = find_program(texts)
    if at == len(texts) or texts[at].rpartition("/")[2] not in CLIENTS:
        return None
    return at if find_verb(texts[at + 1 :]) is not None else None


def find_verb(texts: Sequence[str]) -> int | None:
    """The index of `run` or `create` after the options of the client."""
    for at, text in enumerate(texts):
        if text in ("run", "create"):
            return at
        if text != "container" and not text.startswith("-") and not (at and texts[at - 1] in _VALUED):
            return None
    return None


def run_words(launch: ScriptLaunch) -> tuple[ExpandedWord, ...]:
    """The arguments after `docker run`."""
    verb = find_verb([word.text for word in launch.words[1:]])
    return launch.words[(verb or 0) + 2 :]


def _belongs(first: Word, launch: ScriptLaunch) -> bool:
    """Whether a line continues a launch although the line before it has no backslash."""
    text = first.plain
    if not _CONTINUES.match(text):
        return False
    if text.startswith(("-", "{", "[")):
        return not re.fullmatch(r"\[\[?|\{", text)
    words = run_words(launch)
    at = find_image(words)
    return at is None if not text.startswith("/") else at == len(words) - 1


def read_script(
    source: SourceText,
    environment: ShellEnvironment,
    report: Report,
    read_file: ReadFile = lambda _: None,
    number: int | None = None,
) -> ScriptLaunch:
    """The launch of the text that serves a model, with the words after `docker run`; `number`: that of several.

    Raises UnresolvedError if it is not known without running the text.
    """
    findings = Findings(find_client, _belongs, read_file)
    shell = Shell(Expander(environment, report), report, findings=findings)
    try:
        shell.read(source)
    except UnresolvedError as stop:
        if not shell.launches:
            raise
        report.add(NOT_TAKEN_OVER, f"the text after the launch cannot be read: {stop.reason}", None, stop.place)
    if not shell.launches:
        raise _no_launch(shell, source)
    chosen = _choose([_server(launch) for launch in shell.launches], report, number)
    launch = chosen.launch
    if launch.depends is not None:
        shown = _first_line(source, launch.depends)
        reason = f"the launch depends on `{shown}`, and the text does not decide it"
        raise UnresolvedError(reason, launch.depends.place, BY_CAPTURE)
    if launch.error is not None:
        raise launch.error
    _check_image(chosen)
    _report(shell, launch, report)
    return launch._replace(words=run_words(launch))


CAPTURE = "gb300serve.capture/1"


def is_capture(value: Any) -> bool:
    """Whether JSON is what the script of `import --capture` records."""
    return isinstance(value, dict) and value.get("schema") == CAPTURE


def read_capture(value: Mapping[str, Any], report: Report, number: int | None = None) -> ScriptLaunch:
    """Like `read_script`, among recorded launches. Raises SourceInvalidError for another structure."""
    place, launches = TextPosition(1, 1), list[ScriptLaunch]()
    for item in value.get("launches") or ():
        argv = item.get("argv") if isinstance(item, dict) else None
        if not isinstance(argv, list) or not all(isinstance(word, str) for word in argv) or find_client(argv) is None:
            hint = "record the launch again with the script that `import --capture` prints"
            raise SourceInvalidError(f"{report.file} has a launch that is not a docker command", hint=hint)
        words = tuple(ExpandedWord(re.sub("[\ue000-\ue002]", "", word), place) for word in argv)
        directory = str(item.get("directory") or "/")
        launches.append(ScriptLaunch(words, place, {}, [], directory, {}, None, None, None))
    if not launches:
        raise UnresolvedError("no launch was recorded", place, "record it again, with arguments that reach the launch")
    chosen = _choose([_server(launch) for launch in launches], report, number)
    _check_image(chosen)
    _report_client(chosen.launch, report)
    return chosen.launch._replace(words=run_words(chosen.launch))


def _no_launch(shell: Shell, source: SourceText) -> UnresolvedError:
    findings = shell.findings
    if findings.unknown:
        return findings.unknown[0]
    for fields, place in findings.commands:
        texts = [field.text for field in fields]
        at = find_program(texts)
        if find_launcher(texts[at:]).engine is not None:
            reason = "the text starts the engine without a container, so the image is missing"
            return UnresolvedError(reason, place, "write `docker run --gpus all IMAGE` before it, with its image")
    if findings.absent:
        path, place = findings.absent[0]
        reason = f"the text runs {shorten(path)}, which is not here"
        hint = "put that script beside the text, or import the running container with `import --container NAME`"
        return UnresolvedError(reason, place, hint)
    if (position := find_quoted_launch(source)) is not None:
        line = source.text.split("\n")[position.line - 1]
        if re.match(r"[ \t]*ExecStart(?:Pre|Post)?=", line):
            reason = "the text does not run this launch: it is in a systemd unit that the text contains"
            return UnresolvedError(reason, position, "save the unit as a file of its own, and import that")
        message = "the text does not run this launch: it is in quotes, a comment, a function or another command"
        return UnresolvedError(message, position, "import only this command")
    return UnresolvedError("the text has no `docker run` command", None, _NO_LAUNCH_HINT)


def _server(launch: ScriptLaunch) -> _Server:
    arguments = split_arguments(run_words(launch))
    entrypoint = [option.value for option in arguments.options if option.name == "entrypoint" and option.value]
    words = [*entrypoint[-1:], *(word.text for word in arguments.command)]
    image = arguments.image.text if arguments.image else ""
    engine, other = served(image_repository(image), words)
    return _Server(launch, arguments, engine, other)


def _choose(servers: Sequence[_Server], report: Report, number: int | None) -> _Server:
    """The launch that serves a model. Raises UnresolvedError if none or several do."""
    known = [server for server in servers if server.engine is not None]
    unknown = [server for server in servers if server.engine is None and server.other is None]
    serving = known or [server for server in unknown if server.arguments.command] or unknown
    if not serving:
        first = servers[0]
        if first.launch.error is not None:
            raise first.launch.error
        kinds = ", ".join(dict.fromkeys(server.other or "" for server in servers))
        reason = f"the container runs {kinds}: a recipe describes only {engine_titles()}"
        raise UnresolvedError(reason, first.launch.place, f"import a launch of {engine_titles(' or ')}")
    if number is not None and not 1 <= number <= len(serving):
        reason = f"--launch {number}: the text starts {len(serving)} server{'s' * (len(serving) > 1)}"
        raise UnresolvedError(reason, serving[0].launch.place, f"name a number from 1 to {len(serving)}")
    if number is None and len(serving) > 1:
        for index, server in enumerate(serving, 1):
            message = f"launch {index} is {shorten(server.name)}"
            report.add(UNREADABLE, message, f"`--launch {index}` imports it", server.launch.place)
        raise UnresolvedError(f"the text starts {len(serving)} servers", None, "choose one with `--launch N`")
    chosen = serving[(number or 1) - 1]
    for server in servers:
        if server is not chosen:
            what = f" ({server.other})" if server.other else ""
            message = f"the text also starts the container {shorten(server.name)}{what}: it was left out"
            report.add(NOT_TAKEN_OVER, message, "import it from a separate file", server.launch.place)
    return chosen


_THEN = re.compile(r"[;\s]+(?:then|do)\b.*", re.DOTALL)


def _first_line(source: SourceText, depends: Dependence) -> str:
    """`for gpu in $(seq 0 7)`; only the keyword if the command is not on its line of this text."""
    keyword, place = depends
    line = source.text.split("\n")[place.line - 1 : place.line]
    text = line[0][place.column - 1 :] if line else ""
    text = text.partition(" in ")[0] if keyword == "case" else _THEN.sub("", text)
    return shorten(text) if text.startswith(keyword) else keyword


def _check_image(server: _Server) -> None:
    """Raises UnresolvedError for an image that the text does not name."""
    image = server.arguments.image
    if image is None:
        return
    if find_placeholder(image.text) or _IMAGE_PLACEHOLDER.fullmatch(image.text):
        reason = f"`{shorten(image.text, 40)}` is a placeholder for the image"
        raise UnresolvedError(reason, image.place, "write the name of the image in its place")
    for word in server.arguments.command:
        if _LOST_LINE.search(word.text) and shell_text([one.text for one in server.arguments.command]) is None:
            reason = "a quoted argument continues over lines that begin with options: a quote is missing or too many"
            raise UnresolvedError(reason, word.place, "close the quote where its value ends")


def _report(shell: Shell, launch: ScriptLaunch, report: Report) -> None:
    """What was read with a reservation, and what was left out."""
    for place, comment in shell.findings.joined:
        reason, hint = "the line before does not end in a backslash", "end that line with a backslash to continue it"
        if comment is not None:
            reason = f"the comment on line {comment.line} includes the backslash"
            hint = "move the comment above the command"
        message = f"{reason}, so bash runs this line as a separate command"
        report.add(MENDED, message, f"read as one command; {hint}", place)
    if launch.host is not None:
        message = f"`ssh {shorten(launch.host)}` is left out: the paths and GPUs of the launch are those of that host"
        report.add(LEFT_OUT, message, "run the recipe on that host, or with the site of that Station", launch.place)
    if shell.expander.arguments_read:
        place = shell.expander.arguments_read[0]
        message = "the text uses its arguments: it was read as if it is started without any"
        report.add(UNSET, message, "write `set -- ARGUMENTS` on a line above to import it with arguments", place)
    for name, place in shell.expander.unset.items():
        message = f"a condition depends on {name}, which the text does not set: it was read as unset"
        report.add(UNSET, message, f"write `{name}=…` on a line above to import it with a value", place)
    _report_client(launch, report)
    _report_commands(shell, report)


def _report_client(launch: ScriptLaunch, report: Report) -> None:
    verb = find_verb([word.text for word in launch.words[1:]]) or 0
    report_engine_options(launch.words[1 : verb + 1], launch.exported, launch.place, report)


def report_engine_options(
    words: Sequence[ExpandedWord], exported: Mapping[str, str], place: TextPosition, report: Report
) -> None:
    """Report options and variables that select a Docker Engine: a recipe does not name one."""
    settings = [f"{name}={exported[name]}" for name in _ENGINES if exported.get(name)]
    if options := [word.text for word in words if word.text != "container"]:
        settings.append(" ".join(options))
    if settings:
        written = shorten(report.clean("; ".join(settings)))
        message = f"`{written}` is left out: a recipe does not select a Docker Engine"
        hint = "write `docker: {host: …}` or `{context: …}` to the site file"
        report.add(LEFT_OUT, message, hint, place)


def _report_commands(shell: Shell, report: Report) -> None:
    names = dict(_commands(shell.findings))
    if names:
        shown = [f"`{shorten(report.clean(name), 40)}` (line {place.line})" for (name, place) in list(names)[:8]]
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        message = f"commands that are not part of the launch were left out: {'; '.join(shown)}{more}"
        report.add(LEFT_OUT, message, None, next(iter(names))[1])


def _commands(findings: Findings) -> Iterator[tuple[tuple[str, TextPosition], None]]:
    """The commands by program, with the verb of docker; arguments may contain a password."""
    for fields, place in findings.commands:
        texts = [field.text.replace("\ue002", "…") for field in fields]
        kept = 2 if texts[0].rpartition("/")[2] in CLIENTS or texts[0] in ("sudo", "command") else 1
        if texts[0] not in UNLISTED:
            yield (" ".join(texts[:kept]) + (" …" if len(texts) > kept else ""), place), None
