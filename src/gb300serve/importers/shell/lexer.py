"""Shell text to words and operators, as bash splits it. Here-documents are kept apart, comments are passed over."""

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
_ANSI = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|(.))", re.DOTALL)
_DEEPEST = 40
_PLACEHOLDER = re.compile(r"<[A-Za-z](?:[\w ./-]{0,60}\w)?>(?=[\s:/\"'\\]|$)")


class Lexer:
    """Reads one text from its beginning."""

    def __init__(self, source: SourceText, report: Report, depth: int = 0) -> None:
        self.source, self.text, self.report, self.depth = source, source.text, report, depth
        self.at = 0
        self.comment: TextPosition | None = None
        """The last comment that was passed over."""
        self.documents: list[str] = []
        """The bodies of the here-documents that the last line announced."""
        self._waiting: list[tuple[str, bool]] = []
        if depth > _DEEPEST:
            raise UnresolvedError("the text is nested too deeply", source.place(0))

    def tokens(self) -> Iterator[Word | Operator]:
        """Words and operators; a redirection is an operator whose text is `>` or `<` and what it names."""
        while self._skip():
            found = None if self._placeholder() else _REDIRECTION.match(self.text, self.at)
            if found:
                yield self._redirection(found)
            elif found := _OPERATOR.match(self.text, self.at):
                place = self.source.place(self.at)
                self.at = found.end()
                if found[0] == "\n":
                    self._here_documents()
                yield Operator(found[0], place)
            else:
                yield self._word()

    def inside(self, *, quoted: bool) -> tuple[Part, ...]:
        """The whole text as one word in which blanks are plain: what stands behind `:-`, in double quotes or not."""
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
        """Past blanks, continuations and comments; whether anything is left."""
        while self.at < len(self.text):
            rest = self.text[self.at]
            if rest in " \t":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif rest == "#":
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
                if self._glued(parts):
                    break
            else:
                parts += self._piece()
        return Word(tuple(parts), place)

    def _ends_word(self) -> bool:
        sign = self.text[self.at]
        return (sign in " \t\n;&|<>)" or sign == "(") and not self._placeholder()

    def _placeholder(self) -> re.Match[str] | None:
        """`<your-token>`: to bash two redirections, the second of which takes the next word for the name of a file."""
        return _PLACEHOLDER.match(self.text, self.at)

    def _glued(self, parts: list[Part]) -> bool:
        """A continuation without a blank on either side: bash makes one word of two lines. Was that meant?"""
        place, before = self.source.place(self.at), parts[-1].text[-1:] if parts else ""
        self.at += 2
        following = self.text[self.at : self.at + 1]
        if not parts or following in ("", " ", "\t", "\n", "\\") or before in ",=:/@":
            return False
        message = "no blank stands before the backslash and none after it: bash would glue both lines to one word"
        self.report.add(MENDED, message, "read as a blank; write one before the backslash of a continuation", place)
        return True

    def _piece(self, *, whole: bool = False) -> list[Part]:
        """The next piece of a word."""
        sign = self.text[self.at]
        if sign in '{["' and (lost := self._json(whole=whole)) is not None:
            return [lost]
        match sign:
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
            case "<" if found := self._placeholder():
                part = self._filled_in(found)
            case _:
                found = _PLAIN.match(self.text, self.at)
                part = Part("text", found[0] if found else sign, quoted=False)
                self.at += len(part.text)
        return [part]

    def _filled_in(self, found: re.Match[str]) -> Part:
        message = f"{found[0]} is a placeholder that is not quoted: bash takes `<` and `>` for redirections"
        self.report.add(MENDED, message, "read as a word; write the value in its place", self.source.place(self.at))
        self.at = found.end()
        return Part("text", found[0], quoted=True)

    def _json(self, *, whole: bool) -> Part | None:
        """JSON that was pasted without the quotes that keep it whole."""
        before = self.text[self.at - 1] if self.at else " "
        if whole or before not in " \t\n=":
            return None
        found = find_json(self.text, self.at)
        if found is None:
            return None
        place = self.source.place(self.at)
        said = shorten(found.text, 40)
        message = (
            f"the JSON is not quoted, or its quotes were lost: bash would break {said} at quotes, braces and blanks"
        )
        self.report.add(JSON_MENDED, message, "read as it was meant; write it between single quotes", place)
        self.at = found.end
        return Part("text", found.text, quoted=True)

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
            sign = self.text[self.at]
            if sign == '"':
                self.at += 1
                return parts
            parts.append(self._within_double(sign))
        raise self._unclosed(start, "double quote")

    def _within_double(self, sign: str) -> Part:
        if sign == "$":
            return self._dollar(quoted=True)
        if sign == "`":
            return self._backticks(quoted=True)
        if sign == "\\":
            following = self.text[self.at + 1 : self.at + 2]
            self.at += 2
            taken = following in '$`"\\'
            return Part("text", "" if following == "\n" else following if taken else sign + following, quoted=True)
        end = next((n for n in range(self.at, len(self.text)) if self.text[n] in '"$`\\'), len(self.text))
        found = Part("text", self.text[self.at : end], quoted=True)
        self.at = end
        return found

    def _dollar(self, *, quoted: bool) -> Part:
        text, at = self.text, self.at
        if text.startswith("$((", at):
            return self._program(self._closing(at + 1, "(", ")"), "arithmetic")
        if text.startswith("$(", at):
            return self._taken("command", at + 2, self._closing(at + 1, "(", ")"), quoted=quoted)
        if text.startswith("${", at):
            return self._taken("variable", at + 2, self._closing(at + 1, "{", "}"), quoted=quoted)
        if text.startswith("$'", at) and not quoted:
            return self._ansi()
        if found := _NAME.match(text, at + 1):
            return self._taken("variable", at + 1, found.end(), quoted=quoted, after=0)
        self.at += 1
        return Part("text", "$", quoted=True)

    def _taken(self, kind: str, start: int, end: int, *, quoted: bool, after: int = 1) -> Part:
        self.at = end + after
        inner = self.source.part(start, end)
        return Part("command" if kind == "command" else "variable", inner.text, quoted, inner)

    def _program(self, end: int, what: str) -> Part:
        self.at = end + 1
        return Part("program", what, quoted=False)

    def _ansi(self) -> Part:
        found = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self.text, self.at)
        if found is None:
            raise self._unclosed(self.at + 1, "single quote")
        self.at = found.end()
        return Part("text", _ANSI.sub(_ansi, found[1]), quoted=True)

    def _backticks(self, *, quoted: bool) -> Part:
        end = self.text.find("`", self.at + 1)
        if end < 0:
            raise self._unclosed(self.at, "backtick")
        return self._taken("command", self.at + 1, end, quoted=quoted)

    def _closing(self, at: int, opening: str, closing: str) -> int:
        """Where what opens at `at` closes; quotes and escapes inside are passed over."""
        depth, start = 0, at
        while at < len(self.text):
            sign = self.text[at]
            if sign == "\\":
                at += 1
            elif sign == "'" and opening == "(":
                end = self.text.find("'", at + 1)
                at = len(self.text) if end < 0 else end
            elif sign == '"' and opening == "(":
                at = self._past_quoted(at)
            elif sign in (opening, closing):
                depth += 1 if sign == opening else -1
                if depth == 0:
                    return at
            at += 1
        raise self._unclosed(start - 1, f"${opening}")

    def _past_quoted(self, at: int) -> int:
        """Where the double quote that opens at `at` closes; the end of the text where it does not."""
        at += 1
        while at < len(self.text) and self.text[at] != '"':
            at += 2 if self.text[at] == "\\" else 1
        return at

    def _unclosed(self, at: int, what: str) -> UnresolvedError:
        hint = "close it; in JSON with an apostrophe or quotes inside, check where the quotes begin and end"
        return UnresolvedError(f"the {what} that opens here is never closed", self.source.place(at), hint)

    def _redirection(self, found: re.Match[str]) -> Operator:
        place = self.source.place(self.at)
        self.at = found.end()
        target = self._word() if self._skip() and not self._ends_word() else None
        kind = found[0].lstrip("0123456789&")
        if kind in ("<<", "<<-") and target is not None:
            self._waiting.append((target.plain, kind == "<<-"))
        return Operator(">" if ">" in kind else "<", place, kind, target)

    def _here_documents(self) -> None:
        """Past the bodies of the here-documents that the ended line announced."""
        self.documents = []
        for delimiter, tabs in self._waiting:
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
                message = f"the here-document that ends with {shorten(delimiter, 20)} has no such line"
                self.report.add(NOT_TAKEN_OVER, message, "the rest of the text belongs to it", self.source.place(start))
            self.documents.append("".join(lines))
        self._waiting.clear()


def _ansi(match: re.Match[str]) -> str:
    hexadecimal, unicode, octal, sign = match.groups()
    if sign is not None:
        return _ESCAPES.get(sign, sign if sign in "\\'\"?" else f"\\{sign}")
    code = int(hexadecimal or unicode, 16) if octal is None else int(octal, 8) & 0xFF
    return chr(code) if code and not 0xD800 <= code < 0xE002 else ""
