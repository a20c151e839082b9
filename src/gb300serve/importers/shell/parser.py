"""The grammar of bash: commands, pipelines, lists and compound commands, one complete command after another."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from gb300serve.importers.report import TextPosition, UnresolvedError, shorten
from gb300serve.importers.shell.lexer import Lexer
from gb300serve.importers.shell.words import (
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
    Part,
    Pipeline,
    SimpleCommand,
    SourceText,
    WhileLoop,
    Word,
)

_CLOSING = frozenset(("then", "else", "elif", "fi", "do", "done", "esac", "}", "in"))
_FUNCTION = re.compile(r"[A-Za-z_][\w:.-]*")
_MAX_DEPTH = 60
_TERMINATORS = (";", "\n", "&")
_CASE_ENDS = (";;", ";&", ";;&")
_HINT = "check the quotes and parentheses up to this line with `bash -n FILE`"


class Parser:
    """Parses the tokens of a lexer. Every error is an UnresolvedError with the position that bash would name."""

    def __init__(self, lexer: Lexer) -> None:
        self._lexer = lexer
        self._token: Word | Operator | None = None
        self._depth = 0

    def complete_commands(self) -> Iterator[Node]:
        """The commands of the text, each parsed when the one before it was read: as bash does it."""
        self._advance()
        while True:
            self._skip_lines()
            if self._token is None:
                return
            command = self._and_or()
            ends = isinstance(self._token, Operator) and self._token.text in _TERMINATORS
            if not ends and self._token is not None:
                raise self._unexpected()
            yield command
            if ends:
                self._advance()

    def _advance(self) -> Word | Operator | None:
        token, self._token = self._token, self._lexer.next_token()
        return token

    @property
    def _place(self) -> TextPosition:
        return self._lexer.source.place(self._lexer.at) if self._token is None else self._token.place

    def _is(self, *texts: str) -> bool:
        """Whether the next token is one of these operators or bare words."""
        token = self._token
        return token is not None and (
            token.text in texts if isinstance(token, Operator) else token.bare and token.plain in texts
        )

    def _expect(self, text: str, opening: str, place: TextPosition) -> None:
        if not self._is(text):
            reason = f"`{opening}` on line {place.line} has no `{text}`"
            found = f" before `{self._shown()}`" if self._token is not None else ""
            raise UnresolvedError(f"{reason}{found}", self._place, _HINT)
        self._advance()

    def _shown(self) -> str:
        token = self._token
        text = "" if token is None else token.text if isinstance(token, Operator) else token.plain.replace("\0", "…")
        return "the end of the line" if text == "\n" else shorten(text, 20)

    def _unexpected(self) -> UnresolvedError:
        if self._token is None:
            return UnresolvedError("the text ends in the middle of a command", self._place, _HINT)
        return UnresolvedError(f"bash stops at `{self._shown()}`: it has no place here", self._place, _HINT)

    def _skip_lines(self) -> None:
        while isinstance(self._token, Operator) and self._token.text == "\n":
            self._advance()

    def _list(self, *closing: str) -> Nodes:
        """Commands, at least one, up to one of the closing words, which stays the next token."""
        found = self._commands(*closing)
        if not found:
            raise self._unexpected()
        return found

    def _commands(self, *closing: str) -> Nodes:
        found: list[Node] = []
        self._skip_lines()
        while self._token is not None and not self._is(*closing):
            found.append(self._and_or())
            if not (isinstance(self._token, Operator) and self._token.text in _TERMINATORS):
                break
            self._advance()
            self._skip_lines()
        return tuple(found)

    def _and_or(self) -> Node:
        place, first, rest = self._place, self._pipeline(), list[tuple[str, Node]]()
        while isinstance(self._token, Operator) and self._token.text in ("&&", "||"):
            operator = self._token.text
            self._advance()
            self._skip_lines()
            rest.append((operator, self._pipeline()))
        background = isinstance(self._token, Operator) and self._token.text == "&"
        return AndOr(first, tuple(rest), background, place) if rest or background else first

    def _pipeline(self) -> Node:
        place, negated = self._place, False
        while self._is("!", "time"):
            token = self._advance()
            negated ^= isinstance(token, Word) and token.plain == "!"
        commands = [self._command()]
        while isinstance(self._token, Operator) and self._token.text in ("|", "|&"):
            self._advance()
            self._skip_lines()
            commands.append(self._command())
        return Pipeline(tuple(commands), negated, place) if negated or len(commands) > 1 else commands[0]

    def _command(self) -> Node:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UnresolvedError("the text is nested too deeply", self._place)
        try:
            return self._by_keyword()
        finally:
            self._depth -= 1

    def _by_keyword(self) -> Node:
        token, place = self._token, self._place
        if isinstance(token, Operator) and token.text == "((" and token.target is not None:
            self._advance()
            return self._redirected(Condition((token.target,), place))
        if isinstance(token, Operator) and token.text == "(":
            self._advance()
            body = self._list(")")
            self._expect(")", "(", place)
            return self._redirected(Group(body, is_subshell=True, place=place))
        if not isinstance(token, Word) or not token.bare:
            return self._simple()
        if token.plain in _CLOSING:
            raise self._unexpected()
        parse = _KEYWORDS.get(token.plain)
        return self._simple() if parse is None else self._redirected(parse(self))

    def _while(self) -> Node:
        place, keyword = self._place, self._shown()
        self._advance()
        condition = self._list("do")
        return WhileLoop(keyword, condition, self._body(keyword, place), place)

    def _group(self) -> Node:
        place = self._place
        self._advance()
        body = self._list("}")
        self._expect("}", "{", place)
        return Group(body, is_subshell=False, place=place)

    def _named_function(self) -> Node:
        place = self._place
        self._advance()
        return self._function(self._name("function", place), place)

    def _redirected(self, node: Node) -> Node:
        """Skip the redirections of a compound command: they change no variable."""
        while isinstance(self._token, Operator) and self._token.text in ("<", ">"):
            self._advance()
        return node

    def _simple(self) -> Node:
        place, words, redirections = self._place, list[Word](), list[Operator]()
        self._lexer.comment = None
        while (token := self._token) is not None:
            if isinstance(token, Operator) and token.text in ("<", ">"):
                redirections.append(token)
            elif isinstance(token, Word):
                words.append(token)
            else:
                break
            self._advance()
            if len(words) == 1 and not redirections and self._is("(") and _FUNCTION.fullmatch(words[0].plain):
                return self._function(words[0].plain, place)
        if not words and not redirections:
            raise self._unexpected()
        end = self._token.text if isinstance(self._token, Operator) else ""
        comment, self._lexer.comment = self._lexer.comment, None
        return SimpleCommand(tuple(words), tuple(redirections), place, end, comment)

    def _name(self, keyword: str, place: TextPosition) -> str:
        token = self._advance()
        if not isinstance(token, Word) or not _FUNCTION.fullmatch(token.plain):
            raise UnresolvedError(f"`{keyword}` on line {place.line} has no name", place, _HINT)
        return token.plain

    def _function(self, name: str, place: TextPosition) -> Node:
        if self._is("("):
            self._advance()
            self._expect(")", f"{name}(", place)
        self._skip_lines()
        return Function(name, self._command(), place)

    def _if(self) -> Node:
        place, branches = self._place, list[tuple[Nodes, Nodes]]()
        while self._is("if", "elif"):
            self._advance()
            condition = self._list("then")
            self._expect("then", "if", place)
            branches.append((condition, self._list("elif", "else", "fi")))
        otherwise: Nodes = ()
        if self._is("else"):
            self._advance()
            otherwise = self._list("fi")
        self._expect("fi", "if", place)
        return IfCommand(tuple(branches), otherwise, place)

    def _body(self, keyword: str, place: TextPosition) -> Nodes:
        """The commands between `do` and `done`."""
        self._expect("do", keyword, place)
        body = self._list("done")
        self._expect("done", keyword, place)
        return body

    def _for(self) -> Node:
        place, keyword = self._place, self._shown()
        self._advance()
        if isinstance(self._token, Operator) and self._token.text == "((" and self._token.target is not None:
            part = self._token.target.parts[0]
            self._advance()
            self._skip_separator()
            return ArithmeticLoop(_split_expressions(part, place), self._body("for", place), place)
        name, words = self._name(keyword, place), None
        self._skip_lines()
        if self._is("in"):
            self._advance()
            words = []
            while isinstance(self._token, Word):
                words.append(self._token)
                self._advance()
        self._skip_separator()
        body = self._body(keyword, place)
        if keyword == "select":
            # Its choice is typed, so it is a loop over words that nobody knows.
            return ForLoop(
                name, (Word((Part("program", "the choice of `select`", quoted=False),), place),), body, place
            )
        return ForLoop(name, None if words is None else tuple(words), body, place)

    def _skip_separator(self) -> None:
        if isinstance(self._token, Operator) and self._token.text == ";":
            self._advance()
        self._skip_lines()

    def _case(self) -> Node:
        place = self._place
        self._advance()
        word = self._advance()
        if not isinstance(word, Word):
            raise UnresolvedError(f"`case` on line {place.line} has no word", place, _HINT)
        self._skip_lines()
        self._expect("in", "case", place)
        self._skip_lines()
        items: list[tuple[tuple[Word, ...], Nodes, str]] = []
        while not self._is("esac"):
            patterns = self._patterns(place)
            body, end = self._commands(*_CASE_ENDS, "esac"), ";;"
            if self._is(*_CASE_ENDS):
                end = self._shown()
                self._advance()
                self._skip_lines()
            elif not self._is("esac"):
                raise self._unexpected()
            items.append((patterns, body, end))
        self._expect("esac", "case", place)
        return CaseCommand(word, tuple(items), place)

    def _patterns(self, place: TextPosition) -> tuple[Word, ...]:
        if self._is("("):
            self._advance()
        patterns: list[Word] = []
        while isinstance(self._token, Word):
            patterns.append(self._token)
            self._advance()
            if not self._is("|"):
                break
            self._advance()
        if not patterns:
            raise self._unexpected()
        self._expect(")", "case", place)
        return tuple(patterns)

    def _condition(self) -> Node:
        place, tokens = self._place, list[Word | Operator]()
        self._advance()
        while not (isinstance(self._token, Word) and self._token.bare and self._token.plain == "]]"):
            if self._token is None:
                raise UnresolvedError(f"`[[` on line {place.line} has no `]]`", self._place, _HINT)
            if isinstance(self._token, Word) and self._token.bare and self._token.plain == "=~":
                tokens.append(self._token)
                self._token = self._lexer.regular_expression()
            if not (isinstance(self._token, Operator) and self._token.text == "\n"):
                tokens.append(self._token)
            self._advance()
        self._advance()
        return Condition(tuple(tokens), place)


def _split_expressions(part: Part, place: TextPosition) -> tuple[SourceText, ...]:
    source = part.source or SourceText(part.text, fixed=place)
    marks = [-1, *(at for at, character in enumerate(part.text) if character == ";"), len(part.text)]
    if len(marks) != 4:
        raise UnresolvedError("`for ((` needs three expressions", place, _HINT)
    return tuple(source.part(begin + 1, end) for begin, end in pairwise(marks))


_KEYWORDS: dict[str, Callable[[Parser], Node]] = {
    "if": Parser._if, "for": Parser._for, "select": Parser._for, "while": Parser._while, "until": Parser._while,
    "case": Parser._case, "{": Parser._group, "[[": Parser._condition, "function": Parser._named_function,
}  # fmt: skip
