"""Split shell text into words and operators, as bash does; here-documents are collected, comments skipped."""

import re
from collections.abc import Iterator

from gb300serve.importers.report import (
    JSON_MENDED,
    MENDED,
    NOT_TAKEN_OVER,
    Report,
    TextPosition,
    UnresolvedError,
    shorten,
)
from gb300serve.importers.shell.mend import find_json
from gb300serve.importers.shell.words import Operator, Part, SourceText, Word

_OPERATOR = re.compile(r"&&|\|\||;;&?|;&|\|&|[;&|()\n]")
_REDIRECTION = re.compile(r"(?:\d+|&)?(?:<<<|<<-?|>>|>\||>&|<&|<>|<|>)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
_PLAIN = re.compile(r"[^\s\\'\"$`;&|()<>{\[]+")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}
_ANSI_QUOTED = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ANSI_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|(.))", re.DOTALL)
_BACKTICKS = re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL)
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_UNQUOTED = "write it in quotes"
_MAX_DEPTH = 40
_LONGEST_EXPRESSION = 2_000
_PLACEHOLDER = re.compile(r"<[A-Za-z](?:[\w ./-]{0,60}\w)?>(?=[\s:/\"'\\]|$)")


# After these words, as after an operator, a command begins.
_BEFORE_COMMAND = frozenset(("if", "then", "else", "elif", "while", "until", "do", "for", "!", "{", "time"))
_TEST = re.compile(r"\[\[|[\[{](?=\s)")
_SUBSCRIPT = re.compile(r"\[[^\]\n]*\]=")


class Lexer:
    """Reads a text from its start."""

    def __init__(self, source: SourceText, report: Report, depth: int = 0) -> None:
        self.source, self.text, self.report, self.depth = source, source.text, report, depth
        self.at = 0
        self.comment: TextPosition | None = None
        """The last comment that was skipped."""
        self._pending: list[tuple[Word, bool, list[str]]] = []
        self._starts_command = True
        if depth > _MAX_DEPTH:
            raise UnresolvedError("the text is nested too deeply", source.place(0))

    def tokens(self) -> Iterator[Word | Operator]:
        """Words and operators; a redirection is an operator with its target."""
        while (token := self.next_token()) is not None:
            yield token

    def next_token(self) -> Word | Operator | None:
        """The next word or operator; None at the end of the text."""
        if not self._skip():
            return None
        if self._starts_command and self.text.startswith("((", self.at):
            place, inner = self.source.place(self.at), self._arithmetic(self.at)
            if inner is not None:
                self._starts_command = False
                return Operator("((", place, target=Word((inner,), place))
        match = None if self._placeholder() or self._is_process() else _REDIRECTION.match(self.text, self.at)
        if match:
            return self._redirection(match)
        if (match := _OPERATOR.match(self.text, self.at)) is None:
            word = self._word()
            self._starts_command = self._starts_command and word.bare and word.plain in _BEFORE_COMMAND
            return word
        place = self.source.place(self.at)
        self.at = match.end()
        self._starts_command = True
        if match[0] == "\n":
            self._here_documents()
        return Operator(match[0], place)

    def regular_expression(self) -> Word:
        """The word after `=~`, in which parentheses and bars are text."""
        self._skip()
        place, parts, depth = self.source.place(self.at), list[Part](), 0
        while self.at < len(self.text) and (depth > 0 or self.text[self.at] not in " \t\n"):
            character = self.text[self.at]
            depth += (character == "(") - (character == ")")
            parts += self._piece(whole=True)
        return Word(tuple(parts), place)

    def inside(self, *, quoted: bool, literal_quotes: bool = False) -> tuple[Part, ...]:
        """The whole text as one word, as after `:-` in `${…}`: spaces are literal.

        `literal_quotes`: double quotes are text, as in a here-document.
        """
        parts: list[Part] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if quoted and literal_quotes and character == '"':
                parts.append(Part("text", character, quoted=True))
                self.at += 1
            elif quoted and character != '"':
                parts.append(self._within_double(character))
            elif quoted:
                self.at += 1
            elif character.isspace():
                parts.append(Part("text", character, quoted=False))
                self.at += 1
            else:
                parts += self._piece(whole=True)
        return tuple(parts)

    def _skip(self, *, lines: bool = False) -> bool:
        """Skip spaces, continuations and comments, and `lines`; return whether text is left."""
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in " \t" or (lines and character == "\n"):
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif character == "#":
                self.comment = self.source.place(self.at)
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return True
        return False

    def _word(self) -> Word:
        place, parts = self.source.place(self.at), list[Part]()
        while self.at < len(self.text) and not self._ends_word():
            if self.text.startswith("\\\n", self.at):
                if self._is_lost_space(parts):
                    break
            else:
                _append(parts, self._piece())
        if self.text.startswith("(", self.at) and parts and _ASSIGNED.fullmatch(parts[0].text) and len(parts) == 1:
            parts.append(self._array())
        return Word(tuple(parts), place)

    def _array(self) -> Part:
        """The elements of `NAME=(…)`."""
        opening, words = self.at, list[Word]()
        self.at += 1
        while self._skip(lines=True) and self.text[self.at] != ")":
            if self._ends_word():
                reason = f"`{self.text[self.at]}` has no place in the array that opens on line "
                line = self.source.place(opening).line
                raise UnresolvedError(f"{reason}{line}", self.source.place(self.at), _UNQUOTED)
            words.append(self._word())
        if self.at >= len(self.text):
            raise self._unclosed(opening, "parenthesis")
        self.at += 1
        return Part("array", "", quoted=False, words=tuple(words))

    def _ends_word(self) -> bool:
        return self.text[self.at] in " \t\n;&|<>()" and not self._placeholder() and not self._is_process()

    def _is_process(self) -> bool:
        """Whether a process substitution begins: `<(…)`."""
        return self.text.startswith(("<(", ">("), self.at)

    def _placeholder(self) -> re.Match[str] | None:
        """`<your-token>`, which bash reads as two redirections."""
        return _PLACEHOLDER.match(self.text, self.at)

    def _is_lost_space(self, parts: list[Part]) -> bool:
        """Whether a continuation joins two lines to one word by mistake: it has no space on either side."""
        place, before = self.source.place(self.at), parts[-1].text[-1:] if parts else ""
        self.at += 2
        following = self.text[self.at : self.at + 1]
        if not parts or following in ("", " ", "\t", "\n", "\\") or before in ",=:/@":
            return False
        message = "the backslash has no space before or after it, so bash would join both lines to one word"
        self.report.add(MENDED, message, "read as a space; write a space before the backslash", place)
        return True

    def _piece(self, *, whole: bool = False) -> list[Part]:
        character = self.text[self.at]
        if character in '{["' and (json := self._json(whole=whole)) is not None:
            return [json]
        match character:
            case "\\":
                return self._escape()
            case '"':
                return self._double()
            case "'":
                part = self._single()
            case "$":
                part = self._dollar(quoted=False)
            case "`":
                part = self._backticks(quoted=False)
            case "<" | ">" if self._is_process():
                self.at = self._command_end(self.at + 2) + 1
                part = Part("program", "a process substitution", quoted=False)
            case "<" if match := self._placeholder():
                part = self._placeholder_part(match)
            case _:
                match = _PLAIN.match(self.text, self.at)
                part = Part("text", match[0] if match else character, quoted=False)
                self.at += len(part.text)
        return [part]

    def _placeholder_part(self, match: re.Match[str]) -> Part:
        message = f"{match[0]} is an unquoted placeholder: bash reads `<` and `>` as redirections"
        self.report.add(MENDED, message, "read as a word; replace it by the value", self.source.place(self.at))
        self.at = match.end()
        return Part("text", match[0], quoted=True)

    def _json(self, *, whole: bool) -> Part | None:
        """JSON without the quotes that it needs."""
        before = self.text[self.at - 1] if self.at else " "
        if (self._starts_command and _TEST.match(self.text, self.at)) or _SUBSCRIPT.match(self.text, self.at):
            return None
        json = None if whole or before not in " \t\n=" else find_json(self.text, self.at)
        if json is None:
            return None
        message = f"the JSON {shorten(json.text, 40)} is not quoted: bash would change its quotes, braces and spaces"
        self.report.add(JSON_MENDED, message, "it was repaired; write it in single quotes", self.source.place(self.at))
        self.at = json.end
        return Part("text", json.text, quoted=True)

    def _escape(self) -> list[Part]:
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        return [] if following == "\n" else [Part("text", following, quoted=True)]

    def _single(self) -> Part:
        start, end = self.at + 1, self.text.find("'", self.at + 1)
        if end < 0:
            raise self._unclosed(self.at, "single quote")
        self.at = end + 1
        return Part("text", self.text[start:end], quoted=True, source=self.source.part(start, end))

    def _double(self) -> list[Part]:
        start, parts = self.at, [Part("text", "", quoted=True)]
        self.at += 1
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == '"':
                self.at += 1
                return parts
            parts.append(self._within_double(character))
        raise self._unclosed(start, "double quote")

    def _within_double(self, character: str) -> Part:
        if character == "$":
            return self._dollar(quoted=True)
        if character == "`":
            return self._backticks(quoted=True)
        if character == "\\":
            following = self.text[self.at + 1 : self.at + 2]
            self.at += 2
            text = following if following in '$`"\\' else character + following
            return Part("text", "" if following == "\n" else text, quoted=True)
        end = next((n for n in range(self.at, len(self.text)) if self.text[n] in '"$`\\'), len(self.text))
        part = Part("text", self.text[self.at : end], quoted=True)
        self.at = end
        return part

    def _dollar(self, *, quoted: bool) -> Part:
        text, at = self.text, self.at
        if text.startswith("$((", at) and (part := self._arithmetic(at + 1)) is not None:
            return part._replace(quoted=quoted)
        if text.startswith("$(", at):
            return self._expansion("command", at + 2, self._command_end(at + 2), quoted=quoted)
        if text.startswith("${", at):
            return self._expansion("variable", at + 2, self._brace_end(at + 2, quoted=quoted), quoted=quoted)
        if text.startswith("$'", at) and not quoted:
            return self._ansi()
        if match := _NAME.match(text, at + 1):
            return self._expansion("variable", at + 1, match.end(), quoted=quoted, after=0)
        self.at += 1
        return Part("text", "$", quoted=True)

    def _expansion(self, kind: str, start: int, end: int, *, quoted: bool, after: int = 1) -> Part:
        self.at = end + after
        inner = self.source.part(start, end)
        return Part("command" if kind == "command" else "variable", inner.text, quoted, inner)

    def _ansi(self) -> Part:
        if (match := _ANSI_QUOTED.match(self.text, self.at)) is None:
            raise self._unclosed(self.at + 1, "single quote")
        self.at = match.end()
        return Part("text", _ANSI_ESCAPE.sub(_unescape_ansi, match[1]), quoted=True)

    def _backticks(self, *, quoted: bool) -> Part:
        match = _BACKTICKS.match(self.text, self.at)
        if match is None:
            raise self._unclosed(self.at, "backtick")
        inner = self.source.part(self.at + 1, match.end() - 1).sub(r"\\([`$\\])", lambda escaped: escaped[1])
        self.at = match.end()
        return Part("command", inner.text, quoted, inner)

    def _arithmetic(self, at: int) -> Part | None:
        """The expression of `((…))` at `at`; None if these are subshells."""
        depth = 0
        for index in range(at + 1, min(len(self.text), at + _LONGEST_EXPRESSION)):
            depth += (self.text[index] == "(") - (self.text[index] == ")")
            if depth == 0:
                if not self.text.startswith(")", index + 1):
                    return None
                inner = self.source.part(at + 2, index)
                self.at = index + 2
                return Part("arithmetic", inner.text, quoted=False, source=inner)
        return None

    def _command_end(self, start: int) -> int:
        """The index of the parenthesis that closes a substitution whose commands begin at `start`."""
        outer = self.at, self.comment, self._pending, self._starts_command
        self.at, self._pending, self._starts_command = start, [], True
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise UnresolvedError("the text is nested too deeply", self.source.place(start))
        open_words: list[str] = []
        try:
            while True:
                begins, token = self._starts_command, self.next_token()
                match token:
                    case None:
                        raise self._unclosed(start - 2, self.text[start - 2 : start])
                    case Word() if begins and token.bare and token.plain == "case":
                        open_words.append("case")
                    case Word() if begins and token.bare and token.plain == "esac" and open_words[-1:] == ["case"]:
                        open_words.pop()
                    case Operator(text="("):
                        open_words.append("(")
                    case Operator(text=")") if not open_words:
                        return self.at - 1
                    case Operator(text=")") if open_words[-1] == "(":
                        open_words.pop()
        finally:
            self.depth -= 1
            self.at, self.comment, self._pending, self._starts_command = outer

    def _brace_end(self, at: int, *, quoted: bool) -> int:
        """The index of the brace that closes an expansion: the first outside quotes and other expansions."""
        begin, outer = at, self.at
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise UnresolvedError("the text is nested too deeply", self.source.place(at))
        try:
            self.at = at
            while self.at < len(self.text):
                match self.text[self.at]:
                    case "}":
                        return self.at
                    case "\\":
                        self.at += 2
                    case "'" if not quoted:
                        self._single()
                    case '"':
                        self._double()
                    case "$":
                        self._dollar(quoted=quoted)
                    case "`":
                        self._backticks(quoted=quoted)
                    case _:
                        self.at += 1
            raise self._unclosed(begin - 2, "${")
        finally:
            self.depth -= 1
            self.at = outer

    def _unclosed(self, at: int, name: str) -> UnresolvedError:
        hint = "close it; in JSON with apostrophes or quotes, check where each quote starts and ends"
        return UnresolvedError(f"the {name} that opens here is never closed", self.source.place(at), hint)

    def _redirection(self, match: re.Match[str]) -> Operator:
        place = self.source.place(self.at)
        self.at = match.end()
        target = self._word() if self._skip() and not self._ends_word() else None
        kind = match[0].lstrip("0123456789&")
        document: list[str] | None = None
        if kind in ("<<", "<<-") and target is not None:
            document = []
            self._pending.append((target, kind == "<<-", document))
        written = match[0] if match[0][0] in "2&" else kind
        return Operator(">" if ">" in kind else "<", place, written, target, document)

    def _here_documents(self) -> None:
        for delimiter, tabs, document in self._pending:
            start, lines, last = self.at, list[str](), delimiter.plain
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                line = self.text[self.at : end if end >= 0 else None]
                self.at = len(self.text) if end < 0 else end + 1
                line = line.lstrip("\t") if tabs else line
                if line == last:
                    break
                lines.append(f"{line}\n")
            else:
                message = f"the here-document has no end line {shorten(last, 20)}"
                hint = "the rest of the text was read as its body"
                self.report.add(NOT_TAKEN_OVER, message, hint, self.source.place(start))
            document.append("".join(lines))
        self._pending.clear()


def _append(parts: list[Part], more: list[Part]) -> None:
    """Add parts; plain text joins the plain text before it, so that `A[0]=` is one part."""
    last = parts[-1] if parts else None
    if last and more and last.kind == more[0].kind == "text" and not last.quoted and not more[0].quoted:
        parts[-1] = last._replace(text=last.text + more[0].text)
        more = more[1:]
    parts += more


def _unescape_ansi(match: re.Match[str]) -> str:
    hexadecimal, unicode, octal, character = match.groups()
    if character is not None:
        return _ESCAPES.get(character, character if character in "\\'\"?" else f"\\{character}")
    code = int(hexadecimal or unicode, 16) if octal is None else int(octal, 8) & 0xFF
    return chr(code) if code and not 0xD800 <= code < 0xE002 else ""
