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
_MAX_DEPTH = 40
_PLACEHOLDER = re.compile(r"<[A-Za-z](?:[\w ./-]{0,60}\w)?>(?=[\s:/\"'\\]|$)")


class Lexer:
    """Reads a text from its start."""

    def __init__(self, source: SourceText, report: Report, depth: int = 0) -> None:
        self.source, self.text, self.report, self.depth = source, source.text, report, depth
        self.at = 0
        self.comment: TextPosition | None = None
        """The last comment that was skipped."""
        self.documents: list[str] = []
        """The bodies of the here-documents of the last line."""
        self._pending: list[tuple[str, bool]] = []
        if depth > _MAX_DEPTH:
            raise UnresolvedError("the text is nested too deeply", source.place(0))

    def tokens(self) -> Iterator[Word | Operator]:
        """Words and operators; a redirection is an operator with its target."""
        while self._skip():
            match = None if self._placeholder() else _REDIRECTION.match(self.text, self.at)
            if match:
                yield self._redirection(match)
            elif match := _OPERATOR.match(self.text, self.at):
                place = self.source.place(self.at)
                self.at = match.end()
                if match[0] == "\n":
                    self._here_documents()
                yield Operator(match[0], place)
            else:
                yield self._word()

    def inside(self, *, quoted: bool) -> tuple[Part, ...]:
        """The whole text as one word, as after `:-` in `${…}`: spaces are literal."""
        parts: list[Part] = []
        while self.at < len(self.text):
            if quoted:
                if self.text[self.at] == '"':
                    self.at += 1
                else:
                    parts.append(self._within_double(self.text[self.at]))
                continue
            if self.text[self.at].isspace():
                parts.append(Part("text", self.text[self.at], quoted=False))
                self.at += 1
            else:
                parts += self._piece(whole=True)
        return tuple(parts)

    def _skip(self) -> bool:
        """Skip spaces, continuations and comments; return whether text is left."""
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in " \t":
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
                parts += self._piece()
        return Word(tuple(parts), place)

    def _ends_word(self) -> bool:
        character = self.text[self.at]
        return (character in " \t\n;&|<>)" or character == "(") and not self._placeholder()

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
        """The next piece of a word."""
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
        if whole or before not in " \t\n=":
            return None
        json = find_json(self.text, self.at)
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
        start = self.at
        end = self.text.find("'", start + 1)
        if end < 0:
            raise self._unclosed(start, "single quote")
        self.at = end + 1
        return Part("text", self.text[start + 1 : end], quoted=True)

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
        if text.startswith("$((", at):
            self.at = self._closing(at + 1, "(", ")") + 1
            return Part("program", "arithmetic", quoted=False)
        if text.startswith("$(", at):
            return self._expansion("command", at + 2, self._closing(at + 1, "(", ")"), quoted=quoted)
        if text.startswith("${", at):
            return self._expansion("variable", at + 2, self._closing(at + 1, "{", "}"), quoted=quoted)
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
        match = _ANSI_QUOTED.match(self.text, self.at)
        if match is None:
            raise self._unclosed(self.at + 1, "single quote")
        self.at = match.end()
        return Part("text", _ANSI_ESCAPE.sub(_unescape_ansi, match[1]), quoted=True)

    def _backticks(self, *, quoted: bool) -> Part:
        end = self.text.find("`", self.at + 1)
        if end < 0:
            raise self._unclosed(self.at, "backtick")
        return self._expansion("command", self.at + 1, end, quoted=quoted)

    def _closing(self, at: int, opening: str, closing: str) -> int:
        """The index of the closing bracket; brackets in quotes and escapes do not count."""
        depth, start = 0, at
        while at < len(self.text):
            character = self.text[at]
            if character == "\\":
                at += 1
            elif character == "'" and opening == "(":
                end = self.text.find("'", at + 1)
                at = len(self.text) if end < 0 else end
            elif character == '"' and opening == "(":
                at = self._past_quoted(at)
            elif character in (opening, closing):
                depth += 1 if character == opening else -1
                if depth == 0:
                    return at
            at += 1
        raise self._unclosed(start - 1, f"${opening}")

    def _past_quoted(self, at: int) -> int:
        """The index of the closing double quote, or the end of the text."""
        at += 1
        while at < len(self.text) and self.text[at] != '"':
            at += 2 if self.text[at] == "\\" else 1
        return at

    def _unclosed(self, at: int, name: str) -> UnresolvedError:
        hint = "close it; in JSON with apostrophes or quotes, check where each quote starts and ends"
        return UnresolvedError(f"the {name} that opens here is never closed", self.source.place(at), hint)

    def _redirection(self, match: re.Match[str]) -> Operator:
        place = self.source.place(self.at)
        self.at = match.end()
        target = self._word() if self._skip() and not self._ends_word() else None
        kind = match[0].lstrip("0123456789&")
        if kind in ("<<", "<<-") and target is not None:
            self._pending.append((target.plain, kind == "<<-"))
        return Operator(">" if ">" in kind else "<", place, kind, target)

    def _here_documents(self) -> None:
        """Read the bodies of the here-documents of the line."""
        self.documents = []
        for delimiter, tabs in self._pending:
            start, lines = self.at, list[str]()
            while self.at < len(self.text):
                end = self.text.find("\n", self.at)
                line = self.text[self.at : end if end >= 0 else None]
                self.at = len(self.text) if end < 0 else end + 1
                line = line.lstrip("\t") if tabs else line
                if line == delimiter:
                    break
                lines.append(f"{line}\n")
            else:
                message = f"the here-document has no end line {shorten(delimiter, 20)}"
                hint = "the rest of the text was read as its body"
                self.report.add(NOT_TAKEN_OVER, message, hint, self.source.place(start))
            self.documents.append("".join(lines))
        self._pending.clear()


def _unescape_ansi(match: re.Match[str]) -> str:
    hexadecimal, unicode, octal, character = match.groups()
    if character is not None:
        return _ESCAPES.get(character, character if character in "\\'\"?" else f"\\{character}")
    code = int(hexadecimal or unicode, 16) if octal is None else int(octal, 8) & 0xFF
    return chr(code) if code and not 0xD800 <= code < 0xE002 else ""
