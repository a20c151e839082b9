"""From a text to the one command that launches: assignments before it, lines that lost their continuation, the rest."""

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
    """Whether the command is a `cd` to a directory that the text names; relative paths then start there."""
    if words[0].plain not in ("cd", "pushd") or len(words) != 2:
        return False
    try:
        named = expander.text(expander.with_home(words[1].parts), words[1].place)
    except UnresolvedError:
        return False
    if not named or named == "-" or OPEN in named:
        return False
    expander.environment = replace(
        expander.environment, directory=normpath(join(expander.environment.directory, named))
    )
    return True


def expand_no_op(words: Sequence[Word], expander: Expander) -> bool:
    """Whether the command is `:`, which does nothing; `${PORT:=8000}` among its words is set all the same."""
    if words[0].plain != ":":
        return False
    for word in words[1:]:
        try:
            expander.text(word.parts, word.place)
        except UnresolvedError:
            continue
    return True


def report_engine_options(
    said: Sequence[ExpandedWord], exported: Mapping[str, str], place: TextPosition, report: Report
) -> None:
    """Docker's own options and variables: a recipe does not say where it is launched."""
    found = [f"{name}={exported[name]}" for name in _ENGINES if exported.get(name)]
    words = [field.text for field in said if field.text != "container"]
    if words:
        found.append(" ".join(words))
    if found:
        message = (
            f"`{shorten(report.clean('; '.join(found)))}` is left out: a recipe does not say which Engine it is for"
        )
        report.add(LEFT_OUT, message, "write `docker: {host: …}` or `{context: …}` into the site file", place)


def has_launch(text: str) -> bool:
    """Whether a launch may stand in the text of a substitution."""
    client = _CLIENT.search(text)
    return client is not None and _VERB.search(text, client.end()) is not None


def find_quoted_launch(source: SourceText) -> TextPosition | None:
    """Where the text has a launch that its shell would not start itself: quoted, in a here-document, in a comment."""
    found = _LAUNCH.search(source.text)
    return source.place(found.start()) if found else None


def command_name(words: Sequence[Word]) -> str:
    """A command by its program, docker's with its verb: a password among its words has no shape to be known by."""
    kept = words[: 2 if words[0].plain in CLIENTS | {"sudo"} else 1]
    said = " ".join(word.plain.replace("\0", "…") for word in kept)
    return said if len(kept) == len(words) else f"{said} …"


# What bash replaces in a here-document whose word is not quoted.
_COMPUTED = re.compile(r"[$`\\]")


def write_file(command: Command, directory: str, files: dict[str, str | None]) -> None:
    """What a file holds from here on, by its whole path; None where bash would have to compute it."""
    kinds = {each.kind: each.target for each in command.redirections}
    to, word = kinds.get(">") or kinds.get(">>"), kinds.get("<<") or kinds.get("<<-")
    if [each.plain for each in command.words] != ["cat"] or to is None or word is None or "\0" in to.plain:
        return
    if len(command.redirections) != 2 or len(command.documents) != 1:
        return
    path, (body,) = normpath(join(directory, to.plain)), command.documents
    before = files.get(path) if ">>" in kinds else ""
    computed = not any(part.quoted for part in word.parts) and _COMPUTED.search(body) is not None
    files[path] = None if computed or before is None else before + body


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
_NOTHING_HINT = (
    "paste the `docker run` command, the output of `docker inspect`, or import a running container: --container NAME"
)


class DockerRunCommand(NamedTuple):
    """The words behind `docker run`, what its environment was given, what only the client can know, and what the text
    wrote before, by whole paths (None where bash would have to compute it)."""

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
    """The comment that stands behind the launch on its last line."""
    open: bool = False
    """The launch was the last command, and a line end ended it: a next line may belong to it."""

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
            message = "another container is launched here: only the first is imported"
            self.report.add(NOT_TAKEN_OVER, message, "import it from a file of its own", words[start].place)
        else:
            self._launch(words, start)
        self.open = self.open and command.end == "\n"
        self.comment = command.comment
        if self.open or (self.run is not None and words[0].place == self.run.place):
            self.ignored += ((f"{each.text} …", each.place) for each in command.redirections)

    def _launch(self, words: list[Word], start: int) -> None:
        if self.control is not None:
            keyword, place = self.control
            raise UnresolvedError(
                f"the launch depends on `{keyword}`: the text is a program, and is not run here", place
            )
        for word in words[:start]:
            if found := match_assignment(word):
                name, value = self._value(word, found)
                if not isinstance(value, UnresolvedError):
                    self.expander.meant[name] = self.exported[name] = value
        fields = [one for word in words[start:] for one in self.expander.fields(word)]
        first = next(n for n, one in enumerate(fields) if one.text in ("run", "create"))
        report_engine_options(fields[1:first], self.exported, words[start].place, self.report)
        self.run = DockerRunCommand(
            tuple(fields[first + 1 :]), words[start].place, self.exported, self.expander, dict(self.files)
        )
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
        what, hint = (
            "the line before has no backslash at its end",
            "end the line before with a backslash to continue it",
        )
        if self.comment is not None:
            what = f"the comment on line {self.comment.line} takes the rest of its line, a backslash too"
            hint = "write the comment above the command"
        message = f"{what}: bash ends the command there, and runs this line by itself"
        self.report.add(MENDED, message, f"read as one command; {hint}", words[0].place)
        more = tuple(one for word in words for one in self.expander.fields(word))
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
        left = [word for word in words if match_assignment(word) is None]
        if left:  # assignments in front of a command are that command's alone
            self.ignored.append((command_name(left), left[0].place))
            return
        for word in words:
            self._assign(word)

    def _taken_from(self, launch: Part) -> None:
        """`CID=$(docker run …)`: the launch stands in a substitution, and prints the container's id."""
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
        found = match_assignment(word)
        if found is None:
            return
        if self.run is None and (launch := _substituted(word, found)) is not None:
            self._taken_from(launch)
            return
        name, value = self._value(word, found)
        before = self.expander.variables.get(name)
        if found[2] and isinstance(value, str):
            value = before + value if isinstance(before, str) else before or value
        self.expander.variables[name] = value
        if isinstance(value, str):
            self.exported[name] = value

    def _value(self, word: Word, found: re.Match[str]) -> tuple[str, "str | UnresolvedError"]:
        first, *others = self.expander.with_homes(word.parts, found.end())
        parts = (first._replace(text=first.text[found.end() :]), *others)
        try:
            return found[1], self.expander.text(parts, word.place)
        except UnresolvedError as stop:
            return found[1], stop


def read_script(
    source: SourceText, environment: ShellEnvironment, report: Report, expander: Expander | None = None
) -> DockerRunCommand:
    """The first launch of the text; raises Stop where it cannot be known without running it."""
    reader = _ScriptReader(expander or Expander(environment, report), report)
    try:
        for command in commands(Lexer(source, report)):
            reader.take(command)
    except UnresolvedError as stop:
        if reader.run is None or reader.open:
            raise
        report.add(NOT_TAKEN_OVER, f"behind the launch, the text cannot be read: {stop.reason}", None, stop.place)
    if reader.run is None:
        raise _nothing(reader, source)
    _say_ignored(reader, report)
    return reader.run


def _nothing(reader: _ScriptReader, source: SourceText) -> UnresolvedError:
    """Why there is no launch: a substitution may hold it."""
    for value in reader.expander.variables.values():
        if isinstance(value, UnresolvedError) and "run" in value.reason and "docker" in value.reason:
            return value
    if reader.control is not None:
        return UnresolvedError(
            f"no `docker run` stands in the text outside of `{reader.control[0]}`", reader.control[1]
        )
    if (place := find_quoted_launch(source)) is not None:
        message = "the text does not run this launch: quotes, a here-document, a comment or another command hold it"
        return UnresolvedError(message, place, "import the command alone, without what stands around it")
    return UnresolvedError("the text has no `docker run` command", None, _NOTHING_HINT)


def _say_ignored(reader: _ScriptReader, report: Report) -> None:
    if reader.ignored:
        first = "; ".join(
            f"`{shorten(report.clean(what), 40)}` (line {place.line})" for what, place in reader.ignored[:8]
        )
        more = f" and {len(reader.ignored) - 8} more" if len(reader.ignored) > 8 else ""
        report.add(LEFT_OUT, f"not part of the launch, and not read further: {first}{more}", None, reader.ignored[0][1])
    if reader.control is not None:
        report.add(
            LEFT_OUT, f"`{reader.control[0]}` and what belongs to it is not part of the launch", None, reader.control[1]
        )


def commands(lexer: Lexer) -> Iterator[Command]:
    """The simple commands of a text, one after the other; a list in brackets is an array, which no word stands for."""
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
    """Where the word is an assignment, its name (1), `+` (2) and where the value begins."""
    return _ASSIGNMENT.match(word.parts[0].text) if word.bare else None


def _substituted(word: Word, found: re.Match[str]) -> Part | None:
    """The substitution that is the whole value of an assignment, where it launches a container."""
    values = [part for part in word.parts[1:] if part.kind != "text" or part.text]
    if word.parts[0].text[found.end() :] or len(values) != 1 or values[0].kind != "command":
        return None
    return values[0] if has_launch(values[0].text) else None


def _client(words: list[Word]) -> int | None:
    """Where `docker … run` begins, None for any other command; wrappers and assignments may stand before it."""
    at = 0
    while at < len(words):
        text = words[at].plain
        if text.rpartition("/")[2] in CLIENTS:
            return at if _runs(words[at + 1 :]) else None
        wraps = text in _WRAPPERS or text.startswith("-") or match_assignment(words[at]) or _is_value(words, at)
        if not wraps:
            return None
        at += 1
    return None


def _is_value(words: list[Word], at: int) -> bool:
    return at > 0 and words[at - 1].plain in _VALUED


def _runs(words: list[Word]) -> bool:
    for at, word in enumerate(words):
        text = word.plain
        if text in ("run", "create"):
            return True
        if text != "container" and not text.startswith("-") and not (at and words[at - 1].plain in _VALUED):
            return False
    return False
