"""Run the simple commands of a text, without a program: what they set and print, and the launches among them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from posixpath import dirname, join, normpath

from gb300serve.importers.report import Report, TextPosition, UnresolvedError, shorten
from gb300serve.importers.shell.builtins import (
    BUILTINS,
    PRINTING,
    UNKNOWN,
    Call,
    assign,
    forget,
    forget_by_file,
    match_assignment,
    set_arguments,
)
from gb300serve.importers.shell.expand import NOT_RUN, Expander
from gb300serve.importers.shell.findings import Findings, ScriptLaunch, Status
from gb300serve.importers.shell.interpreter import Flow, Interpreter
from gb300serve.importers.shell.operators import Operand
from gb300serve.importers.shell.programs import RUNS_TEXT, find_program, shell_operand, ssh_host
from gb300serve.importers.shell.words import (
    OPEN,
    ExpandedWord,
    Function,
    ShellEnvironment,
    SimpleCommand,
    SourceText,
    Variable,
    Word,
    written,
)

_SHELLS = frozenset(("bash", "sh", "dash", "zsh", "ksh"))
DECLARING = frozenset(("export", "readonly", "local", "declare", "typeset"))
_LEAVING: dict[str, Flow] = {"exit": "exit", "return": "return", "break": "break", "continue": "continue"}
_MAX_REPEATED = 20_000
_MAX_LAUNCHES = 50
# Commands that need not be reported as left out.
UNLISTED = frozenset(("echo", "printf", "true", ":", "set", "trap", "sleep", "wait", "shopt", "ulimit", "umask"))
_TO_FILE = frozenset((">", ">>", ">|"))
_AWAY = _TO_FILE | {"&>", "&>>", ">&"}


@dataclass(slots=True)
class Shell(Interpreter):
    """A shell that reads a text."""

    findings: Findings = field(default_factory=lambda: Findings(lambda _: None))
    host: str | None = None
    _open: bool = False
    """The launch ended at the end of the last line, so that the next line may belong to it."""
    _comment: TextPosition | None = None
    _output: list[str] | None = None
    """What the commands of a substitution print, which ran under `_output_level` unknown conditions."""
    _output_level: int = 0
    _sourced: int | None = None
    """The number of unknown conditions that decided whether the present file was sourced."""

    def __post_init__(self) -> None:
        self.expander.substitute = self._substitute

    @property
    def directory(self) -> str:
        """The working directory. Raises UnresolvedError if it is not known."""
        value = known.value if (known := self.expander.variables.get("PWD")) else None
        if isinstance(value, UnresolvedError):
            raise value
        return value if isinstance(value, str) else self.expander.environment.directory

    def is_beside(self, path: str) -> bool:
        base = dirname(self.expander.environment.script or "") or self.expander.environment.directory
        return (self._absolute(path) or "").startswith(f"{base.rstrip('/')}/") and self._text_of(path) is not None

    def _absolute(self, path: str) -> str | None:
        """None for a path below a working directory that the text does not decide."""
        with suppress(UnresolvedError):
            return normpath(path if path.startswith("/") else join(self.directory, path))
        return None

    def _text_of(self, path: str) -> str | None:
        """The text of a file that the text wrote or that can be read."""
        absolute = self._absolute(path)
        if absolute in self.findings.files:
            return self.findings.files[absolute]
        if self.host is not None or absolute is None:
            return None
        moved = absolute != normpath(join(self.expander.environment.directory, path))
        return self.findings.read_file(absolute if moved else path)

    def simple(self, node: SimpleCommand) -> Flow:
        self._count(node)
        if self._open and node.words and self._join(node):
            return None
        self._open = False
        at = next((n for n, word in enumerate(node.words) if match_assignment(word) is None), len(node.words))
        if at == len(node.words):
            self._assign(node)
            return None
        call, found, report = self._expand(node, at)
        texts = (call.name, *call.arguments)
        start = self.findings.find_launch(texts)
        if start is not None:
            self.report.merge(report)
            self._launch(node, at, found, start, call.error)
            return "exit" if "exec" in texts[:start] else None
        if not at or (call.name not in ("eval", "source", ".") and f"{call.name}()" not in self.expander.variables):
            return self._dispatch(call, found)
        return self._with_assignments(node.words[:at], call, found)

    def _with_assignments(self, words: Sequence[Word], call: Call, fields: list[ExpandedWord]) -> Flow:
        """Run a function or another text of this shell; the assignments before it hold as long as it runs."""
        matches = [(word, match) for word in words if (match := match_assignment(word)) is not None]
        before = {match[1]: self.expander.variables.get(match[1]) for _, match in matches}
        for word, match in matches:
            assign(self.expander, word, match, exported=True)
        flow = self._dispatch(call, fields)
        for name, variable in before.items():
            self.expander.variables.restore(name, variable)
        return flow

    def _count(self, node: SimpleCommand) -> None:
        self.findings.repeated += bool(self.loops or self.calls or self.depth)
        if self.findings.repeated > _MAX_REPEATED:
            raise UnresolvedError(f"loops and functions run more than {_MAX_REPEATED:,} commands", node.place)

    def _assign(self, node: SimpleCommand) -> None:
        for word in node.words:
            if (match := match_assignment(word)) is not None:
                assign(self.expander, word, match)
        is_known = all(part.kind != "command" for word in node.words for part in word.parts)
        self.status = Status(is_known or None, "an assignment", node.place)

    def _expand(self, node: SimpleCommand, at: int) -> tuple[Call, list[ExpandedWord], Report]:
        """The command with its words expanded; the findings of the expansion count only for a launch."""
        expander, report = self.expander, Report(self.report.file, self.report.secrets)
        name = node.words[at].plain
        fields, error = list[ExpandedWord](), None
        expander.report, outer = report, expander.report
        if self._output is None:
            expander.assumed = set()
        separators = self._before_command(node.words[:at])
        expander.assuming = name in ("[", "test")
        try:
            for word in node.words[at:]:
                if name in DECLARING and match_assignment(word) is not None:
                    continue
                try:
                    fields += expander.fields(word)
                except UnresolvedError as stop:
                    error = error or stop
                    fields.append(ExpandedWord(UNKNOWN, word.place))
        finally:
            expander.report, expander.assuming, expander.command_variables = outer, False, {}
        texts = [field.text for field in fields] or [""]
        call = Call(texts[0], node.words[at + 1 :], tuple(texts[1:]), error, node, separators)
        return call, fields, report

    def _before_command(self, words: Sequence[Word]) -> str | None:
        """Note the assignments before a command; returns its IFS."""
        for word in words:
            match = match_assignment(word)
            self.expander.variables.begin()
            try:
                if match is not None:
                    assign(self.expander, word, match)
                    variable = self.expander.variables[match[1]]
                    if isinstance(variable.value, str):
                        self.expander.command_variables[match[1]] = variable.value
            finally:
                self.expander.variables.undo()
        return self.expander.command_variables.get("IFS")

    def _dispatch(self, call: Call, fields: list[ExpandedWord]) -> Flow:
        texts = (call.name, *call.arguments)
        known = self.expander.variables.get(f"{call.name}()")
        if known is not None and isinstance(known.value, UnresolvedError):
            raise known.value
        if known is not None and isinstance(known.value, Function):
            return self.call(known.value, call.arguments, call.error)
        if call.name in ("[", "test"):
            self.status = self._test(call)
            return None
        if call.name in _LEAVING:
            return self._leave(call)
        if call.name in BUILTINS:
            return self._builtin(call)
        at = find_program(texts)
        wrapped = texts[:at]
        program = texts[at].rpartition("/")[2] if at < len(texts) else ""
        if call.name == "exec" and not program:
            return None
        flow = self._run(call, fields[at:], program)
        return "exit" if "exec" in wrapped else flow

    def _run(self, call: Call, fields: Sequence[ExpandedWord], program: str) -> Flow:
        """Run what may contain commands itself; other programs do not matter."""
        arguments, node = [field.text for field in fields[1:]], call.node
        self.status = Status(None, _shown(node), node.place, frozenset(self.expander.assumed))
        if program == "eval":
            return self._eval(call)
        if program in ("source", "."):
            return self._source(call, arguments)
        if program in BUILTINS and call.name in ("command", "builtin"):
            index = len(node.words) - len(fields)
            words = node.words[index + 1 :] if index >= 0 else ()
            self._builtin(call._replace(name=program, words=words, arguments=tuple(arguments)))
        elif program in _SHELLS or program in RUNS_TEXT:
            self._shell(call, arguments, fields)
        elif program == "ssh":
            self._ssh(call, arguments, fields)
        elif not (fields and "/" in fields[0].text and self._script(fields[0].text, arguments, call)):
            self._external(call, fields)
        return None

    def _external(self, call: Call, fields: Sequence[ExpandedWord]) -> None:
        if fields and UNKNOWN in fields[0].text and call.error is not None:
            self.findings.unknown.append(call.error)
        if fields and self._output is None:
            self.findings.commands.append((tuple(fields), call.node.place))
        self._print(call, [field.text for field in fields])

    def _print(self, call: Call, texts: Sequence[str]) -> None:
        """Note what a command prints: to a file, or as the output of a substitution."""
        targets = [one for one in call.node.redirections if one.kind in _AWAY]
        if not targets and self._output is None:
            return
        text = self._printed(call, texts)
        for operator in targets:
            if operator.kind in _TO_FILE and operator.target is not None:
                self._write(operator.target, text, append=operator.kind == ">>")
        if not targets and self._output is not None:
            if text is None and call.error is not None:
                raise call.error
            if text is None or self.uncertain > self._output_level:
                raise UnresolvedError(f"the output of {_shown(call.node)} {NOT_RUN}", call.node.place)
            self._output.append(text)

    def _printed(self, call: Call, texts: Sequence[str]) -> str | None:
        if call.error is not None or any(UNKNOWN in text for text in texts):
            return None
        if list(texts) == ["cat"] and (document := self._document(call)) is not None:
            return document.text
        with suppress(UnresolvedError):
            return PRINTING[texts[0]](texts[1:], self.directory) if texts and texts[0] in PRINTING else None
        return None

    def _write(self, target: Word, text: str | None, *, append: bool) -> None:
        try:
            path = self._absolute(self.expander.text(self.expander.with_home(target.parts), target.place))
        except UnresolvedError:
            return
        if path is None or path.startswith("/dev/") or OPEN in path:
            return
        before = self.findings.files.get(path) if append else ""
        is_known = text is not None and OPEN not in text and before is not None and not self.uncertain
        self.findings.files[path] = (before or "") + text if is_known and text is not None else None

    def _builtin(self, call: Call) -> Flow:
        if self.calls and call.name in DECLARING - {"export", "readonly"}:
            for word in call.words:
                match = match_assignment(word)
                name = match[1] if match else word.plain
                self.calls[-1][1].setdefault(name, self.expander.variables.get(name))
        value = BUILTINS[call.name](self.expander, call)
        self.status = Status(value, _shown(call.node), call.node.place, frozenset(self.expander.assumed))
        if call.name in PRINTING or call.node.redirections:
            self._print(call, (call.name, *call.arguments))
        return None

    def _test(self, call: Call) -> Status:
        arguments = call.arguments[:-1] if call.name == "[" else call.arguments
        operands = [Operand(None if OPEN in text or UNKNOWN in text else text, text) for text in arguments]
        command = f"`{shorten(' '.join(written(word) for word in call.node.words), 50)}`"
        outer, self.expander.assumed = self.expander.assumed, set(self.expander.assumed)
        value = None if call.name == "[" and call.arguments[-1:] != ("]",) else self.conditions().by_arguments(operands)
        outer |= self.expander.assumed
        return Status(value, command, call.node.place, frozenset(outer))

    def _leave(self, call: Call) -> Flow:
        code = (*call.arguments, "")[0]
        if call.name in ("break", "continue"):
            if not self.loops:
                return None
            if code not in ("", "1"):
                raise UnresolvedError(f"`{call.name} {code}` leaves several loops", call.node.place)
        if code.isdigit():
            self.status = Status(code == "0", f"`{call.name} {code}`", call.node.place)
        if self._sourced is not None and call.name == "return" and not self.calls and self.uncertain > self._sourced:
            raise UnresolvedError("`return` leaves the file under a condition that is not known", call.node.place)
        is_top = call.name == "return" and not self.calls and self._sourced is None
        return "exit" if is_top else _LEAVING[call.name]

    def _eval(self, call: Call) -> Flow:
        text = " ".join(call.arguments)
        if call.error is not None or OPEN in text:
            error = call.error or UnresolvedError("`eval` runs a value that the text does not set", call.node.place)
            self.findings.unknown.append(error)
            forget(self.expander, "`eval` of what is not known", call.node.place)
            return None
        return self._nested(self._inner_source(call.words, text, call.node.place))

    def _nested(self, source: SourceText) -> Flow:
        self.depth += 1
        try:
            return self.read(source)
        finally:
            self.depth -= 1

    def _inner_source(self, words: Sequence[Word], text: str, place: TextPosition) -> SourceText:
        """The source of a text in quotes, with its positions if it is written in one piece."""
        parts = [part for part in words[-1].parts if part.text or part.kind != "text"] if words else []
        if len(parts) == 1 and parts[0].kind == "text" and parts[0].text == text and parts[0].source is not None:
            return parts[0].source
        return SourceText(text, fixed=place)

    def _source(self, call: Call, arguments: Sequence[str]) -> Flow:
        place = call.node.place
        path = arguments[0] if arguments and UNKNOWN not in arguments[0] and OPEN not in arguments[0] else None
        text = None if path is None else self._text_of(path)
        if text is None:
            shown = path or written((call.words or call.node.words)[0])
            known = path is not None and self.host is None and self._absolute(path) not in (None, *self.findings.files)
            forget_by_file(self.expander, shown, place, guarded=self.uncertain > 0 if known else None)
            return None
        outer = self.expander.variables.get("@")
        if len(arguments) > 1:
            set_arguments(self.expander, arguments[1:], call.error)
        level, self._sourced = self._sourced, self.uncertain
        flow = self._nested(SourceText(text, fixed=place))
        self._sourced = level
        if len(arguments) > 1:
            self.expander.variables.restore("@", outer)
        return None if flow == "return" else flow

    def _shell(self, call: Call, arguments: Sequence[str], fields: Sequence[ExpandedWord]) -> None:
        """`bash -c TEXT`, `bash FILE`, and `bash` with a here-document."""
        at, is_text = shell_operand(fields[0].text, arguments)
        if at < len(arguments) and UNKNOWN in arguments[at]:
            if call.error is not None:
                self.findings.unknown.append(call.error)
        elif is_text and at < len(arguments):
            source = self._inner_source(call.words, arguments[at], fields[at + 1].place)
            self._child(call, source, arguments[at + 2 :], arguments[at + 1] if at + 1 < len(arguments) else None)
        elif at < len(arguments) and self._script(arguments[at], arguments[at + 1 :], call):
            return
        elif at < len(arguments):
            self.findings.absent.append((arguments[at], call.node.place))
        elif (source_ := self._document(call)) is not None:
            self._child(call, source_, (), None)

    def _document(self, call: Call) -> SourceText | None:
        """What a command reads from a here-document or a here-string."""
        for one in call.node.redirections:
            if one.target is None:
                continue
            try:
                if one.kind == "<<<":
                    return SourceText(self.expander.text(one.target.parts, one.place), fixed=one.place)
                if one.document:
                    quoted = any(part.quoted for part in one.target.parts)
                    text = one.document[0] if quoted else self.expander.document(one.document[0], one.place)
                    return SourceText(text, fixed=one.place)
            except UnresolvedError as error:
                self.findings.unknown.append(error)
        return None

    def _script(self, path: str, arguments: Sequence[str], call: Call) -> bool:
        """Follow another script, if it is here; returns whether it is."""
        text = self._text_of(path) if OPEN not in path else None
        if text is None:
            if path.endswith((".sh", ".bash")):
                self.findings.absent.append((path, call.node.place))
            return False
        self._child(call, SourceText(text, fixed=call.node.place), arguments, path)
        return True

    def _child(self, call: Call, source: SourceText, arguments: Sequence[str], name: str | None) -> None:
        """Follow a text in a new shell, which has the exported variables."""
        own = self.expander
        variables = {key: variable for key, variable in own.variables.items() if variable.exported or key == "PWD"}
        given = {key: Variable(value, exported=True) for key, value in self._given(call).items()}
        environment = ShellEnvironment(own.environment.home, own.environment.directory, own.environment.user, name)
        self._new_shell(source, variables | given, environment, arguments, call.error)

    def _given(self, call: Call) -> dict[str, str]:
        """The variables that are set before the command, or by `env`."""
        self._before_command([word for word in call.node.words if match_assignment(word) is not None])
        given, self.expander.command_variables = self.expander.command_variables, {}
        return given

    def _new_shell(
        self,
        source: SourceText,
        variables: Mapping[str, Variable],
        environment: ShellEnvironment,
        arguments: Sequence[str],
        error: UnresolvedError | None,
    ) -> None:
        expander = Expander(environment, self.report, references=self.expander.references, absent=self.expander.absent)
        for name, variable in variables.items():
            expander.variables[name] = variable
        shell = Shell(expander, self.report, self.launches, self.depth + 1, self.depends, findings=self.findings)
        shell.host, shell.uncertain = self.host, self.uncertain
        set_arguments(expander, arguments, error)
        shell.read(source)
        self.expander.assumed |= expander.assumed

    def _ssh(self, call: Call, arguments: Sequence[str], fields: Sequence[ExpandedWord]) -> None:
        """`ssh HOST COMMAND`: the shell of the other host reads the command."""
        at = ssh_host(arguments)
        if at >= len(arguments):
            return
        host, words = arguments[at], arguments[at + 1 :]
        if any(UNKNOWN in word for word in words):
            if call.error is not None:
                self.findings.unknown.append(call.error)
            return
        source = self._inner_source(call.words, " ".join(words), fields[at + 1].place) if words else None
        if source is None or (words[0].rpartition("/")[2] in _SHELLS and "-c" not in words):
            source = self._document(call)
        if source is not None:
            outer, self.host = self.host, host
            try:
                self._new_shell(source, {}, ShellEnvironment("~", "~"), (), None)
            finally:
                self.host = outer

    def _launch(
        self, node: SimpleCommand, at: int, fields: Sequence[ExpandedWord], start: int, error: UnresolvedError | None
    ) -> None:
        if len(self.launches) >= _MAX_LAUNCHES:
            raise UnresolvedError(f"the text starts more than {_MAX_LAUNCHES} containers", node.place)
        variables = self.expander.variables
        exported = {name: one.value for name, one in variables.items() if isinstance(one.value, str) and name != "PWD"}
        self._before_command(node.words[:at])
        exported |= self.expander.command_variables
        self.expander.command_variables = {}
        for field_ in fields[:start]:
            name, equals, value = field_.text.partition("=")
            if equals and name.isidentifier():
                exported[name] = value
        try:
            directory = self.directory
        except UnresolvedError as unknown:
            directory, error = "/", error or (unknown if any("./" in one.text for one in fields) else None)
        launch = ScriptLaunch(
            tuple(fields[start:]), fields[start].place, exported, self.expander.references, directory,
            self.findings.files.copy(), error, self.depends, self.host,
        )  # fmt: skip
        self.launches.append(launch)
        self.status = Status(None, "the launch", node.place)
        self._open, self._comment = node.end == "\n", node.comment
        if self._output is not None and not any(one.kind in _AWAY for one in node.redirections):
            raise UnresolvedError("the ID of a container is known only when it runs", node.place)

    def _join(self, node: SimpleCommand) -> bool:
        """Add a line that lost its continuation to the launch before it."""
        launch = self.launches[-1]
        if not self.findings.belongs(node.words[0], launch):
            return False
        self.findings.joined.append((node.place, self._comment))
        error, fields = launch.error, list(launch.words)
        for word in node.words:
            try:
                fields += self.expander.fields(word)
            except UnresolvedError as stop:
                error = error or stop
        self.launches[-1] = launch._replace(words=tuple(fields), error=error)
        self._open, self._comment = node.end == "\n", node.comment
        return True

    def _substitute(self, source: SourceText, place: TextPosition) -> str:
        """The output of `$(…)`."""
        outer, self._output, level, self._output_level = self._output, [], self._output_level, self.uncertain
        expander = self.expander
        state = expander.assuming, expander.report, self.status, expander.command_variables
        expander.assuming, expander.command_variables = False, {}
        try:
            self.subshell(lambda: self._nested(source))
            return "".join(self._output).rstrip("\n")
        except UnresolvedError as error:
            if not error.reason.endswith(NOT_RUN):
                raise
            inner = shorten(source.text.strip(), 40)
            raise UnresolvedError(f"the output of $({inner}) {NOT_RUN}", place) from error
        finally:
            self._output, self._output_level = outer, level
            expander.assuming, expander.report, self.status, expander.command_variables = state


def _shown(node: SimpleCommand) -> str:
    """How to name a command without its arguments, which may contain a password."""
    words = [word for word in node.words if match_assignment(word) is None]
    return f"`{shorten(written(words[0]), 30)} …`" if len(words) > 1 else f"`{written(words[0])}`"
