"""Follow the control flow of a text as bash would, without running a program.

A value is known, or unknown for a reason with a line. A condition is true, false or unknown; after an unknown one, what
its branches change differently is unknown as well.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from gb300serve.importers.report import Report, TextPosition, UnresolvedError, shorten
from gb300serve.importers.shell.builtins import set_arguments
from gb300serve.importers.shell.expand import Expander
from gb300serve.importers.shell.findings import Dependence, ScriptLaunch, Status
from gb300serve.importers.shell.lexer import Lexer
from gb300serve.importers.shell.operators import Conditions, Operand, matches_pattern
from gb300serve.importers.shell.parser import Parser
from gb300serve.importers.shell.words import (
    OPEN,
    AndOr,
    ArithmeticLoop,
    CaseCommand,
    Condition,
    ForLoop,
    Function,
    Group,
    IfCommand,
    Node,
    Nodes,
    Operator,
    Pipeline,
    Reference,
    SimpleCommand,
    SourceText,
    Variable,
    WhileLoop,
    Word,
    written,
)

Flow = Literal["exit", "return", "break", "continue"] | None
"""How a command leaves the commands around it; None if the next command follows."""
Change = dict[str, Variable | None]
_Branch = Callable[[], Flow]
_Loop = ForLoop | ArithmeticLoop | WhileLoop
_MAX_ITERATIONS = 2_000
_MAX_CALLS = 30
_MAX_ROUNDS = 12


class _UnknownLoopError(Exception):
    """The text does not decide how often a loop runs."""


@dataclass(slots=True)
class Interpreter(ABC):
    """The control flow of one shell; a subclass runs the simple commands."""

    expander: Expander
    report: Report
    launches: list[ScriptLaunch] = field(default_factory=list)
    depth: int = 0
    depends: Dependence | None = None
    status: Status = field(default_factory=lambda: Status(None, "the text", TextPosition(1, 1)))
    uncertain: int = 0
    """How many unknown conditions decide whether the present command runs."""
    calls: list[tuple[int, Change, list[Change]]] = field(default_factory=list)
    """The functions that run: the number of their branch, local variables, and the states at each `return`."""
    loops: int = 0
    """The loops around the present command in its function."""
    _leaves_loop: bool = False
    """Whether `break` or `continue` ran under an unknown condition."""

    @abstractmethod
    def simple(self, node: SimpleCommand) -> Flow:
        """Run a simple command and set the status."""

    @abstractmethod
    def is_beside(self, path: str) -> bool:
        """Whether a path is a file that lies beside the text."""

    def read(self, source: SourceText) -> Flow:
        """Follow the text, command by command."""
        lexer = Lexer(source, self.report, self.depth)
        try:
            for node in Parser(lexer).complete_commands():
                if (flow := self._node(node)) is not None:
                    return flow
        except RecursionError as error:
            raise UnresolvedError("the text is nested too deeply", source.place(lexer.at)) from error
        return None

    def run(self, nodes: Nodes) -> Flow:
        """Follow commands, one after the other."""
        for node in nodes:
            if (flow := self._node(node)) is not None:
                return flow
        return None

    def _node(self, node: Node) -> Flow:
        return _RUN[type(node)](self, node)

    def _group(self, node: Group) -> Flow:
        return self.subshell(lambda: self.run(node.body)) if node.is_subshell else self.run(node.body)

    def _define(self, node: Function) -> Flow:
        self.expander.variables[f"{node.name}()"] = Variable(node)
        return None

    def _pipeline(self, node: Pipeline) -> Flow:
        flow = self._node(node.commands[0]) if len(node.commands) == 1 else None
        if len(node.commands) > 1:
            for command in node.commands:
                self.subshell(lambda command=command: self._node(command))  # type: ignore[misc]
            self.status = Status(None, "a pipeline", node.place)
        if node.negated and self.status.value is not None:
            self.status = self.status._replace(value=not self.status.value)
        return flow

    def subshell(self, run: _Branch) -> Flow:
        """What a subshell assigns ends with it, and so does its `exit`."""
        flow, _ = self._tentatively(run)
        if flow is not None:
            self.status = self.status._replace(value=None, command="a subshell")
        return None

    def _and_or(self, node: AndOr) -> Flow:
        if node.background:
            return self.subshell(lambda: self._and_or(node._replace(background=False)))
        flow = self._node(node.first)
        for operator, command in node.rest:
            if flow is not None:
                return flow
            status = self.status

            def go(command: Node = command) -> Flow:
                return self._node(command)

            def skip(status: Status = status) -> Flow:
                self.status = status
                return None

            flow = self._choose(status, go, skip) if operator == "&&" else self._choose(status, skip, go)
        return flow

    def _if(self, node: IfCommand, number: int = 0) -> Flow:
        if number == len(node.branches):
            self.status = Status(value=True, command="if", place=node.place)
            return self.run(node.otherwise)
        condition, body = node.branches[number]
        if (flow := self.run(condition)) is not None:
            return flow
        depends = Dependence("if", node.place)
        return self._choose(self.status, lambda: self.run(body), lambda: self._if(node, number + 1), depends)

    def _choose(self, status: Status, then: _Branch, otherwise: _Branch, depends: Dependence | None = None) -> Flow:
        """Follow the branch that the status decides, or both if it is not known."""
        if status.value is None:
            return self._follow_all([then, otherwise], status, depends)
        taken, other = (then, otherwise) if status.value else (otherwise, then)
        if not status.assumed:
            return taken()
        launches = len(self.launches)
        flow, changes = self._tentatively(taken)
        if flow == "exit" and len(self.launches) == launches:
            self._require(status)
            return other()
        self._apply(changes)
        return flow

    def _apply(self, changes: Change) -> None:
        for name, variable in changes.items():
            self.expander.variables.restore(name, variable)

    def _require(self, status: Status) -> None:
        """The text stops unless the caller sets these variables, so their defaults do not count."""
        variables, stops = self.expander.variables, f"the text stops on line {status.place.line} without"
        for name in sorted(status.assumed):
            self.expander.count_forgotten(status.place)
            if name.startswith("$"):
                error = UnresolvedError(f"{stops} arguments, and it does not contain them", status.place)
                variables["@"] = Variable(error)
                self.expander.arguments_read.clear()
                continue
            self.expander.unset.pop(name, None)
            for other, variable in list(variables.items()):
                if name in variable.assumed and other != name:
                    error = UnresolvedError(f"{other} depends on {name}: {stops} it", status.place)
                    variables[other] = Variable(error, variable.exported)
            variables[name] = Variable(self.expander.add_reference(Reference("env", name)))

    def _follow_all(self, branches: Sequence[_Branch], status: Status, depends: Dependence | None = None) -> Flow:
        """Follow every branch. Those that stop without a launch are guards; the others have to agree."""
        outer = self.depends
        outcomes: list[tuple[Flow, Change, int, int]] = []
        with self._uncertainly(depends):
            for branch in branches:
                first = len(self.launches)
                self.status = status
                flow, changes = self._tentatively(branch)
                outcomes.append((flow, changes, first, len(self.launches)))
        alive = [outcome for outcome in outcomes if outcome[0] != "exit" or outcome[2] < outcome[3]]
        if len(alive) > 1:
            self.status = status._replace(value=None)
            return self._merge([(flow, changes) for flow, changes, _, _ in alive if flow != "exit"], status)
        if not alive:
            return "exit"
        flow, changes, first, last = alive[0]
        self.launches[first:last] = [launch._replace(depends=outer) for launch in self.launches[first:last]]
        self.status = status._replace(value=None)
        self._apply(changes)
        return flow

    @contextmanager
    def _uncertainly(self, depends: Dependence | None) -> Iterator[None]:
        """Run commands that an unknown condition decides."""
        outer, self.depends = self.depends, self.depends or depends
        self.uncertain += 1
        try:
            yield
        finally:
            self.uncertain -= 1
            self.depends = outer

    def _tentatively(self, run: _Branch) -> tuple[Flow, Change]:
        """Run commands and take back what they change; returns the changes."""
        self.expander.variables.begin()
        try:
            flow = run()
        finally:
            changes = self.expander.variables.undo()
        return flow, changes

    def _merge(self, outcomes: Sequence[tuple[Flow, Change]], status: Status) -> Flow:
        """Go on with what the branches agree on."""
        staying = [changes for flow, changes in outcomes if flow != "return"]
        for flow, changes in outcomes:
            if flow == "return" and self.calls and staying:
                first, _, returns = self.calls[-1]
                returns.append({**self.expander.variables.changed(first), **changes})
            elif flow in ("break", "continue"):
                self._leaves_loop = True
        staying = staying or [changes for _, changes in outcomes]
        for name in dict.fromkeys(name for changes in staying for name in changes):
            present = self.expander.variables.get(name)
            self._agree(name, [changes.get(name, present) for changes in staying], status)
        flows = {flow for flow, _ in outcomes}
        return "return" if flows == {"return"} else None if flows else "exit"

    def _agree(self, name: str, states: Sequence[Variable | None], status: Status) -> None:
        """The state of a variable after branches that leave it in these states."""
        first = states[0]
        # A variable that was unset differs from one that was never set.
        if all((state and (state.value,)) == (first and (first.value,)) for state in states):
            self.expander.variables.restore(name, first and first.agreeing(states))
            return
        subject = {"@": "the arguments", "PWD": "the working directory"}.get(name, name.removesuffix("()"))
        verb = "depend" if name == "@" else "depends"
        reason = f"{subject} {verb} on {status.command} (line {status.place.line}), which the text does not decide"
        error = next((state.value for state in states if state and isinstance(state.value, UnresolvedError)), None)
        exported = any(state.exported for state in states if state)
        self.expander.variables[name] = Variable(error or UnresolvedError(reason, status.place), exported)

    def _condition(self, node: Condition) -> Flow:
        """`[[ … ]]` and `((…))`."""
        first = node.tokens[0] if node.tokens else None
        part = first.parts[0] if isinstance(first, Word) and first.parts else None
        with self.expander.assume() as assumed:
            if len(node.tokens) == 1 and part is not None and part.kind == "arithmetic" and part.source is not None:
                command = f"`(({shorten(part.text, 30)}))`"
                value: bool | None = None
                with suppress(UnresolvedError):
                    value = self.expander.arithmetic(part.source, node.place) != 0
            else:
                command = f"`[[ {_shown(node.tokens)} ]]`"
                value = self.conditions().by_words([operand for one in node.tokens for operand in self._operands(one)])
            self.status = Status(value, command, node.place, frozenset(assumed))
        return None

    def conditions(self) -> Conditions:
        """What decides `test` and `[[`, with the present variables."""
        return Conditions(self._is_set, self.is_beside)

    def _is_set(self, name: str) -> bool:
        variable = self.expander.variables.get(name)
        if variable is None:
            self.expander.assumed.add(name)
        return variable is not None and variable.value is not None

    def _operands(self, token: Word | Operator) -> Iterator[Operand]:
        if isinstance(token, Operator):
            yield Operand(None, token.text)
            if token.target is not None:  # the lexer took `<` for a redirection
                yield Operand(None)
            return
        plain = token.plain if token.bare and all(part.kind == "text" for part in token.parts) else None
        try:
            text = self.expander.text(self.expander.with_home(token.parts), token.place)
            pattern = self.expander.pattern_pieces(token)
        except UnresolvedError:
            yield Operand(None, plain)
        else:
            yield Operand(None if OPEN in text else text, plain, pattern)

    def _case(self, node: CaseCommand) -> Flow:
        if any(end != ";;" for *_, end in node.items):
            raise UnresolvedError("`case` goes on to its next commands with `;&`", node.place)
        bodies: list[_Branch] = [lambda body=body: self.run(body) for _, body, _ in node.items]  # type: ignore[misc]
        if not any(pattern.plain == "*" for patterns, *_ in node.items for pattern in patterns):
            bodies.append(lambda: None)
        (status, number), depends = self._match(node), Dependence("case", node.place)
        if status.value is None:
            return self._follow_all(bodies, status, depends)
        others = [run for at, run in enumerate(bodies) if at != number]
        return self._choose(status, bodies[number], lambda: self._follow_all(others, status, depends))

    def _match(self, node: CaseCommand) -> tuple[Status, int]:
        """The number of the first pattern that matches; a status of None if that is not known."""
        with self.expander.assume() as assumed:
            try:
                text = self.expander.text(self.expander.with_home(node.word.parts), node.place)
            except UnresolvedError:
                text = OPEN
            number, known = len(node.items), None if OPEN in text else True
            for at, (patterns, *_) in enumerate(node.items):
                results = [self._matches(text, pattern) for pattern in patterns]
                if True in results or None in results:
                    number, known = at, known if True in results else None
                    break
            return Status(known, f"`case {written(node.word)}`", node.place, frozenset(assumed)), number

    def _matches(self, text: str, pattern: Word) -> bool | None:
        try:
            pieces = self.expander.pattern_pieces(pattern)
        except UnresolvedError:
            return None
        return None if any(OPEN in piece for piece, _ in pieces) else matches_pattern(text, pieces)

    def _loop(self, node: _Loop) -> Flow:
        variables, outer, launches = self.expander.variables, self._leaves_loop, len(self.launches)
        self._leaves_loop = False
        flow: Flow = None
        variables.begin()
        self.loops += 1
        try:
            flow = self._iterate(node)
            is_known = not self._leaves_loop
        except _UnknownLoopError:
            is_known = False
        finally:
            self.loops -= 1
            changes = variables.undo()
            self._leaves_loop = outer
        if is_known:
            self._apply(changes)
            return flow
        del self.launches[launches:]
        self._forget_loop(node, set(changes))
        return None

    def _iterate(self, node: _Loop) -> Flow:
        """Run a loop whose rounds are known. Raises _UnknownLoopError for others."""
        rounds = 0
        for _ in self._rounds(node):
            rounds += 1
            if rounds > _MAX_ITERATIONS:
                raise _UnknownLoopError
            flow = self.run(node.body)
            if flow == "break" or self._leaves_loop:
                break
            if flow in ("exit", "return"):
                return flow
        self.status = Status(None if rounds else True, "a loop", node.place)
        return None

    def _rounds(self, node: _Loop) -> Iterator[None]:
        match node:
            case ForLoop():
                yield from self._words(node)
            case ArithmeticLoop():
                start, condition, step = node.expressions
                self._compute(start, node)
                while not condition.text.strip() or self._compute(condition, node) != 0:
                    yield
                    self._compute(step, node)
            case WhileLoop():
                while True:
                    if self.run(node.condition) is not None or self.status.value is None:
                        raise _UnknownLoopError
                    if self.status.value == (node.keyword == "until"):
                        return
                    yield

    def _words(self, node: ForLoop) -> Iterator[None]:
        try:
            if node.words is None:
                words = self.expander.arguments(node.place)
            else:
                words = [field.text for word in node.words for field in self.expander.fields(word)]
        except UnresolvedError as error:
            raise _UnknownLoopError from error
        if any(OPEN in word or re.search(r"[*?]|\[[^\]]+\]", word) for word in words):
            raise _UnknownLoopError
        for word in words:
            self.expander.variables[node.name] = Variable(word, assumed=frozenset(self.expander.assumed))
            yield

    def _compute(self, source: SourceText, node: ArithmeticLoop) -> int:
        try:
            return self.expander.arithmetic(source, node.place)
        except UnresolvedError as error:
            raise _UnknownLoopError from error

    def _forget_loop(self, node: _Loop, names: set[str]) -> None:
        """After a loop whose rounds are not known, everything that a round may change is not known."""
        keyword = node.keyword if isinstance(node, WhileLoop) else "for"
        leaves, first = self._leaves_loop, len(self.launches)
        names |= {node.name} if isinstance(node, ForLoop) else set()

        def round_() -> Flow:
            self._set_unknown(names, node, keyword)
            return self.run((*(node.condition if isinstance(node, WhileLoop) else ()), *node.body))

        with self._uncertainly(Dependence(keyword, node.place)):
            self.loops += 1
            for _ in range(_MAX_ROUNDS):
                del self.launches[first:]
                _, changes = self._tentatively(round_)
                if changes.keys() <= names:
                    break
                names |= changes.keys()
            else:
                raise UnresolvedError(f"the loop `{keyword}` changes too much", node.place)
            self.loops -= 1
        self._leaves_loop = leaves
        self._set_unknown(names, node, keyword)
        self.status = Status(None, f"`{keyword}`", node.place)

    def _set_unknown(self, names: Iterable[str], node: Node, keyword: str) -> None:
        for name in sorted(names):
            known = self.expander.variables.get(name)
            loop = f"the loop `{keyword}` on line {node.place.line}"
            reason = f"{name} is set in {loop}, and the text does not decide how often that runs"
            self.expander.variables[name] = Variable(
                UnresolvedError(reason, node.place), bool(known and known.exported)
            )

    def call(self, function: Function, arguments: Sequence[str], error: UnresolvedError | None) -> Flow:
        """Run a function with its own arguments and local variables."""
        if len(self.calls) >= _MAX_CALLS:
            raise UnresolvedError(f"{function.name} calls itself too often", function.place)
        variables, loops = self.expander.variables, self.loops
        local, returns = Change(), list[Change]()
        outer = variables.get("@")
        self.calls.append((variables.branches, local, returns))
        variables.begin()
        self.loops = 0
        try:
            set_arguments(self.expander, arguments, error)
            flow = self._node(function.body)
        finally:
            self.calls.pop()
            self.loops = loops
            changes = variables.undo()
        before = {name: variables.get(name) for name in changes}
        self._apply(changes)
        left = Status(None, f"a `return` of {function.name}", function.place)
        for state in returns:
            for name in (changes.keys() | state.keys()) - local.keys() - {"@"}:
                present = variables.get(name)
                self._agree(name, [present, state.get(name, before.get(name, present))], left)
        for name, variable in local.items():
            variables.restore(name, variable)
        variables.restore("@", outer)
        if returns:
            self.status = self.status._replace(value=None)
        return "exit" if flow == "exit" else None


def _shown(tokens: Sequence[Word | Operator]) -> str:
    return shorten(" ".join(written(one) if isinstance(one, Word) else one.text for one in tokens), 50)


_RUN: dict[type[Node], Callable[[Interpreter, Any], Flow]] = {
    SimpleCommand: lambda shell, node: shell.simple(node),
    Pipeline: Interpreter._pipeline,
    AndOr: Interpreter._and_or,
    IfCommand: Interpreter._if,
    CaseCommand: Interpreter._case,
    Condition: Interpreter._condition,
    ForLoop: Interpreter._loop,
    ArithmeticLoop: Interpreter._loop,
    WhileLoop: Interpreter._loop,
    Group: Interpreter._group,
    Function: Interpreter._define,
}
