"""Find the `docker run` of a text, and apply the assignments and files before it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from posixpath import join, normpath
from typing import NamedTuple

from gb300serve.importers.docker_arguments import find_image
from gb300serve.importers.report import LEFT_OUT, MENDED, NOT_TAKEN_OVER, Report, TextPosition, UnresolvedError, shorten
from gb300serve.importers.shell.expand import Expander, ShellEnvironment
from gb300serve.importers.shell.lexer import Lexer
from gb300serve.importers.shell.words import OPEN, Command, ExpandedWord, Operator, Part, SourceText, Word

CLIENTS = frozenset(("docker", "podman", "nerdctl"))
_CLIENT = re.compile(r"\b(?:docker|podman|nerdctl)\b")
_VERB = re.compile(r"\b(?:run|create)\b")
_LAUNCH = re.compile(r"\b(?:docker|podman|nerdctl)(?:[ \t]+container)?[ \t]+(?:run|create)\b")
_ENGINES = ("DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST")


def change_directory(words: Sequence[Word], expander: Expander) -> bool:
    """Follow `cd DIRECTORY`; returns whether the command is one."""
    if words[0].plain not in ("cd", "pushd") or len(words) != 2:
        return False
    try:
        directory = expander.text(expander.with_home(words[1].parts), words[1].place)
    except UnresolvedError:
        return False
    if not directory or directory == "-" or OPEN in directory:
        return False
    path = normpath(join(expander.environment.directory, directory))
    expander.environment = replace(expander.environment, directory=path)
    return True


def expand_no_op(words: Sequence[Word], expander: Expander) -> bool:
    """Expand the arguments of `:`, which may set `${PORT:=8000}`; returns whether the command is one."""
    if words[0].plain != ":":
        return False
    for word in words[1:]:
        try:
            expander.text(word.parts, word.place)
        except UnresolvedError:
            continue
    return True


def report_engine_options(
    options: Sequence[ExpandedWord], exported: Mapping[str, str], place: TextPosition, report: Report
) -> None:
    """Report options and variables that select a Docker Engine: a recipe does not name one."""
    settings = [f"{name}={exported[name]}" for name in _ENGINES if exported.get(name)]
    if words := [option.text for option in options if option.text != "container"]:
        settings.append(" ".join(words))
    if settings:
        written = shorten(report.clean("; ".join(settings)))
        message = f"`{written}` is left out: a recipe does not select a Docker Engine"
        report.add(LEFT_OUT, message, "write `docker: {host: …}` or `{context: …}` to the site file", place)


def has_launch(text: str) -> bool:
    """Whether the text may contain a launch."""
    client = _CLIENT.search(text)
    return client is not None and _VERB.search(text, client.end()) is not None


def find_quoted_launch(source: SourceText) -> TextPosition | None:
    """The position of a launch that bash does not run: in quotes, in a here-document or in a comment."""
    match = _LAUNCH.search(source.text)
    return source.place(match.start()) if match else None


def command_name(words: Sequence[Word]) -> str:
    """The program of a command, with the verb of docker; arguments may contain a password."""
    kept = words[: 2 if words[0].plain in CLIENTS | {"sudo"} else 1]
    name = " ".join(word.plain.replace("\0", "…") for word in kept)
    return name if len(kept) == len(words) else f"{name} …"


# Characters that bash expands in a here-document with an unquoted end word.
_EXPANDED = re.compile(r"[$`\\]")


def write_file(command: Command, directory: str, files: dict[str, str | None]) -> None:
    """Record the file that `cat > FILE <<END` writes; its content is None if bash would have to expand it."""
    targets = {redirection.kind: redirection.target for redirection in command.redirections}
    to, word = targets.get(">") or targets.get(">>"), targets.get("<<") or targets.get("<<-")
    if [argument.plain for argument in command.words] != ["cat"] or to is None or word is None or "\0" in to.plain:
        return
    if len(command.redirections) != 2 or len(command.documents) != 1:
        return
    path, (body,) = normpath(join(directory, to.plain)), command.documents
    before = files.get(path) if ">>" in targets else ""
    is_expanded = not any(part.quoted for part in word.parts) and _EXPANDED.search(body) is not None
    files[path] = None if is_expanded or before is None else before + body


_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_CONTROL = frozenset((
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function",
    "{", "}", "[[", "((",
))  # fmt: skip
_DECLARING = frozenset(("export", "readonly", "declare", "typeset", "local"))
_WRAPPERS = frozenset(("sudo", "nohup", "exec", "time", "command", "env", "doas", "!", "then", "do", "else"))
_VALUED = frozenset(
    ("-u", "--user", "-g", "--context", "-c", "-H", "--host", "--config", "-l", "--log-level", "-C", "--connection")
)
_CONTINUES = re.compile(r"-|[{\[]|/[A-Za-z]|[\w.-]+(?:[:/][\w.-]+)*/[\w.-]+[:@][\w.:@-]+$")
_NO_LAUNCH_HINT = "use a `docker run` command, the output of `docker inspect`, or --container NAME"


class DockerRunCommand(NamedTuple):
    """The arguments of `docker run`, the exported variables, and the files that the text wrote, by absolute path (None
    for content that is not known)."""

    words: tuple[ExpandedWord, ...]
    place: TextPosition
    exported: dict[str, str]
    expander: Expander
    files: Mapping[str, str | None]


@dataclass(slots=True)
class _ScriptReader:
    expander: Expander
    report: Report
    exported: dict[str, str] = field(default_factory=dict)
    files: dict[str, str | None] = field(default_factory=dict)
    control: tuple[str, TextPosition] | None = None
    run: DockerRunCommand | None = None
    ignored: list[tuple[str, TextPosition]] = field(default_factory=list)
    comment: TextPosition | None = None
    """The comment on the last line of the launch."""
    open: bool = False
    """The launch ended at the end of the last line, so that the next line may belong to it."""

    def take(self, command: Command) -> None:
        words = command.words
        if not words:
            return
        if self.open and self._belongs(words):
            self._join(words)
        elif (start := _client(words)) is None:
            self.open = False
            write_file(command, self.expander.environment.directory, self.files)
            self._other(words)
        elif self.run is not None:
            self.open = False
            message = "the text launches another container: only the first was imported"
            self.report.add(NOT_TAKEN_OVER, message, "import it from a separate file", words[start].place)
        else:
            self._launch(words, start)
        self.open = self.open and command.end == "\n"
        self.comment = command.comment
        if self.open or (self.run is not None and words[0].place == self.run.place):
            self.ignored += ((f"{operator.text} …", operator.place) for operator in command.redirections)

    def _launch(self, words: list[Word], start: int) -> None:
        if self.control is not None:
            keyword, place = self.control
            message = f"the launch depends on `{keyword}`: the text is a program, which import does not run"
            raise UnresolvedError(message, place)
        for word in words[:start]:
            if match := match_assignment(word):
                name, value = self._value(word, match)
                if not isinstance(value, UnresolvedError):
                    self.expander.command_variables[name] = self.exported[name] = value
        fields = [field for word in words[start:] for field in self.expander.fields(word)]
        first = next(n for n, field in enumerate(fields) if field.text in ("run", "create"))
        report_engine_options(fields[1:first], self.exported, words[start].place, self.report)
        arguments, place = tuple(fields[first + 1 :]), words[start].place
        self.run = DockerRunCommand(arguments, place, self.exported, self.expander, dict(self.files))
        self.open = True

    def _belongs(self, words: list[Word]) -> bool:
        first = words[0].plain
        if self.run is None or not _CONTINUES.match(first):
            return False
        at = find_image(self.run.words)
        if first.startswith(("-", "{", "[")):
            return True
        return at is None if not first.startswith("/") else at == len(self.run.words) - 1

    def _join(self, words: list[Word]) -> None:
        if self.run is None:
            return
        reason, hint = "the line before does not end in a backslash", "end that line with a backslash to continue it"
        if self.comment is not None:
            reason = f"the comment on line {self.comment.line} includes the backslash"
            hint = "move the comment above the command"
        message = f"{reason}, so bash runs this line as a separate command"
        self.report.add(MENDED, message, f"read as one command; {hint}", words[0].place)
        more = tuple(field for word in words for field in self.expander.fields(word))
        self.run = self.run._replace(words=self.run.words + more)

    def _other(self, words: list[Word]) -> None:
        first = words[0].plain
        if first in _CONTROL and words[0].bare and self.control is None:
            self.control = (first, words[0].place)
        if first in _DECLARING:
            self._declare(words[1:])
            return
        if expand_no_op(words, self.expander):
            return
        if self.run is None and self.control is None and change_directory(words, self.expander):
            return
        arguments = [word for word in words if match_assignment(word) is None]
        if arguments:  # assignments before a command apply only to that command
            self.ignored.append((command_name(arguments), arguments[0].place))
            return
        for word in words:
            self._assign(word)

    def _take_substitution(self, launch: Part) -> None:
        """`CID=$(docker run …)`: read the launch in the substitution."""
        for command in commands(Lexer(launch.source or SourceText(launch.text), self.report, 1)):
            self.take(command)
        self.open = False

    def _declare(self, words: list[Word]) -> None:
        for word in words:
            if match_assignment(word) is not None:
                self._assign(word)
            elif isinstance(known := self.expander.variables.get(word.plain), str):
                self.exported[word.plain] = known

    def _assign(self, word: Word) -> None:
        match = match_assignment(word)
        if match is None:
            return
        if self.run is None and (launch := _launch_substitution(word, match)) is not None:
            self._take_substitution(launch)
            return
        name, value = self._value(word, match)
        before = self.expander.variables.get(name)
        if match[2] and isinstance(value, str):
            value = before + value if isinstance(before, str) else before or value
        self.expander.variables[name] = value
        if isinstance(value, str):
            self.exported[name] = value

    def _value(self, word: Word, match: re.Match[str]) -> tuple[str, str | UnresolvedError]:
        first, *others = self.expander.with_homes(word.parts, match.end())
        parts = (first._replace(text=first.text[match.end() :]), *others)
        try:
            return match[1], self.expander.text(parts, word.place)
        except UnresolvedError as error:
            return match[1], error


def read_script(
    source: SourceText, environment: ShellEnvironment, report: Report, expander: Expander | None = None
) -> DockerRunCommand:
    """The first launch of the text. Raises UnresolvedError if it is not known without running the text."""
    reader = _ScriptReader(expander or Expander(environment, report), report)
    try:
        for command in commands(Lexer(source, report)):
            reader.take(command)
    except UnresolvedError as stop:
        if reader.run is None or reader.open:
            raise
        report.add(NOT_TAKEN_OVER, f"the text after the launch cannot be read: {stop.reason}", None, stop.place)
    if reader.run is None:
        raise _no_launch(reader, source)
    _report_ignored(reader, report)
    return reader.run


def _no_launch(reader: _ScriptReader, source: SourceText) -> UnresolvedError:
    """The reason why the text has no launch."""
    for value in reader.expander.variables.values():
        if isinstance(value, UnresolvedError) and "run" in value.reason and "docker" in value.reason:
            return value
    if reader.control is not None:
        return UnresolvedError(f"the text has no `docker run` outside `{reader.control[0]}`", reader.control[1])
    if (place := find_quoted_launch(source)) is not None:
        message = "the text does not run this launch: it is in quotes, a here-document, a comment or another command"
        return UnresolvedError(message, place, "import only this command")
    return UnresolvedError("the text has no `docker run` command", None, _NO_LAUNCH_HINT)


def _report_ignored(reader: _ScriptReader, report: Report) -> None:
    if reader.ignored:
        names = [f"`{shorten(report.clean(name), 40)}` (line {place.line})" for name, place in reader.ignored[:8]]
        more = f" and {len(reader.ignored) - 8} more" if len(reader.ignored) > 8 else ""
        message = f"commands that are not part of the launch were left out: {'; '.join(names)}{more}"
        report.add(LEFT_OUT, message, None, reader.ignored[0][1])
    if reader.control is not None:
        keyword, place = reader.control
        report.add(LEFT_OUT, f"`{keyword}` and its commands are not part of the launch", None, place)


def commands(lexer: Lexer) -> Iterator[Command]:
    """The simple commands of a text. An array (`A=(…)`) is skipped."""
    command, last = Command(), None
    for token in lexer.tokens():
        if isinstance(token, Word):
            command.words.append(token)
            last = token
            continue
        if token.text == "(" and last is not None and match_assignment(last) and last.plain.endswith("="):
            command.words[-1] = Word((*last.parts, Part("program", "a bash array", quoted=False)), last.place)
            _skip_brackets(lexer, token)
            last = None
            continue
        last = None
        if token.text in "<>":
            command.redirections.append(token)
            continue
        if token.text == "\n":
            command.documents, lexer.documents = lexer.documents, []
        command.end, command.comment, lexer.comment = token.text, lexer.comment, None
        yield command
        command = Command()
    yield command


def _skip_brackets(lexer: Lexer, opening: Operator) -> None:
    depth = 1
    for token in lexer.tokens():
        if isinstance(token, Operator):
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0:
                return
    raise UnresolvedError("the bracket that opens here is never closed", opening.place)


def match_assignment(word: Word) -> re.Match[str] | None:
    """The match of an assignment: its name (1) and `+` (2); the value follows."""
    return _ASSIGNMENT.match(word.parts[0].text) if word.bare else None


def _launch_substitution(word: Word, match: re.Match[str]) -> Part | None:
    """The substitution that launches a container and is the whole value of an assignment."""
    values = [part for part in word.parts[1:] if part.kind != "text" or part.text]
    if word.parts[0].text[match.end() :] or len(values) != 1 or values[0].kind != "command":
        return None
    return values[0] if has_launch(values[0].text) else None


def _client(words: list[Word]) -> int | None:
    """The index of `docker` in `docker … run`, after wrappers and assignments; None for other commands."""
    for at, word in enumerate(words):
        text = word.plain
        if text.rpartition("/")[2] in CLIENTS:
            return at if _has_run(words[at + 1 :]) else None
        is_value = at > 0 and words[at - 1].plain in _VALUED
        if not (is_value or text in _WRAPPERS or text.startswith("-") or match_assignment(word)):
            return None
    return None


def _has_run(words: list[Word]) -> bool:
    for at, word in enumerate(words):
        text = word.plain
        if text in ("run", "create"):
            return True
        if text != "container" and not text.startswith("-") and not (at and words[at - 1].plain in _VALUED):
            return False
    return False
