"""Words expanded as bash would: variables of the text and their defaults, `~`, files that are named and never read."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from gb300serve.importers.report import SPELLING, UNSET, Report, TextPosition, UnresolvedError, shorten
from gb300serve.importers.shell.braces import expand_braces
from gb300serve.importers.shell.lexer import Lexer
from gb300serve.importers.shell.words import (
    OPEN,
    ExpandedWord,
    Operator,
    Part,
    Reference,
    SourceText,
    Word,
    reference_mark,
)

_LONGEST_COMPUTED = 4096
_SLICE = re.compile(r"\s*(-?\d{1,6})\s*(?::\s*(-?\d{1,6})\s*)?")


class Glob(NamedTuple):
    """One piece of a pattern: a sign that stands for itself, `?`, `*`, or a class."""

    kind: str
    signs: str = ""

    def takes(self, sign: str) -> bool:
        match self.kind:
            case "one":
                return True
            case "class":
                return _in_class(self.signs, sign)
            case _:
                return sign == self.signs


def parse_pattern(pieces: list[tuple[str, bool]]) -> list[Glob] | None:
    """A pattern of texts and whether each is quoted: then `*`, `?` and `[` are plain signs. None for a class that is
    never closed or has a name (`[:alpha:]`)."""
    signs = [(sign, quoted) for text, quoted in pieces for sign in text]
    found: list[Glob] = []
    at = 0
    while at < len(signs):
        sign, quoted = signs[at]
        if (sign, quoted) == ("[", False):
            end = _closing(signs, at)
            inner = "".join(each for each, _ in signs[at + 1 : end])
            if end is None or "[:" in inner:
                return None
            found.append(Glob("class", inner))
            at = end
        elif not quoted and sign in "*?":
            found.append(Glob("any" if sign == "*" else "one"))
        else:
            found.append(Glob("sign", sign))
        at += 1
    return found


def _closing(signs: list[tuple[str, bool]], start: int) -> int | None:
    """Where a class ends: a `]` that stands first in it is one of its signs."""
    first = start + 1 + (signs[start + 1 : start + 2] in ([("!", False)], [("^", False)]))
    return next((at for at in range(first + 1, len(signs)) if signs[at] == ("]", False)), None)


def trim(value: str, operator: str, glob: list[Glob]) -> str | None:
    """`value` without the shortest (`#`, `%`) or longest (`##`, `%%`) match at its beginning or end; None where it is
    too long to be looked at."""
    if len(value) > _LONGEST_COMPUTED or len(value) * len(glob) > _LONGEST_COMPUTED * 64:
        return None
    front = operator[0] == "#"
    lengths = _lengths(value if front else value[::-1], glob if front else glob[::-1])
    if not lengths:
        return value
    length = lengths[0] if len(operator) == 1 else lengths[-1]
    return value[length:] if front else value[: len(value) - length]


def replace(value: str, old: str, new: str, *, every: bool) -> str:
    """`${X/old/new}` and `${X//old/new}` for an `old` without a pattern."""
    return value.replace(old, new, -1 if every else 1) if old else value


def change_case(value: str, operator: str) -> str:
    """`^^`, `^`, `,,`, `,`."""
    change = str.upper if operator[0] == "^" else str.lower
    return change(value) if len(operator) == 2 else change(value[:1]) + value[1:]


def slice_value(value: str, behind: str) -> str | None:
    """`${X:offset}` and `${X:offset:length}`; None for anything that is no number."""
    found = _SLICE.fullmatch(behind)
    if found is None or (behind.startswith("-") and not behind.startswith(" ")):
        return None
    offset, length = int(found[1]), found[2]
    begin = max(offset + len(value), 0) if offset < 0 else offset
    if offset < -len(value):
        return ""
    if length is None:
        return value[begin:]
    end = begin + int(length) if int(length) >= 0 else len(value) + int(length)
    return value[begin:end] if end >= begin else None


def _lengths(value: str, glob: list[Glob]) -> list[int]:
    """The lengths of all beginnings of `value` that the whole pattern matches, the shortest first."""
    at = _through({0}, glob)
    found = [0] if len(glob) in at else []
    for length, sign in enumerate(value, 1):
        at = _through({n + (glob[n].kind != "any") for n in at if n < len(glob) and _steps(glob[n], sign)}, glob)
        if len(glob) in at:
            found.append(length)
        if not at:
            break
    return found


def _steps(piece: Glob, sign: str) -> bool:
    return piece.kind == "any" or piece.takes(sign)


def _through(at: set[int], glob: list[Glob]) -> set[int]:
    """`at`, and every place that is reached from there by stars that match nothing."""
    found = set(at)
    for place, piece in enumerate(glob):
        if piece.kind == "any" and place in found:
            found.add(place + 1)
    return found


def _in_class(signs: str, sign: str) -> bool:
    negated = signs[0] in "!^"
    body, at, found = signs[negated:], 0, False
    while at < len(body):
        if body[at + 1 : at + 2] == "-" and at + 2 < len(body):
            found = found or body[at] <= sign <= body[at + 2]
            at += 3
        else:
            found = found or body[at] == sign
            at += 1
    return found != negated


_FORM = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-=?+])(.*))?", re.DOTALL)
_COMPUTED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(##?|%%?|//?|\^\^?|,,?|:)(.*)", re.DOTALL)
_LENGTH = re.compile(r"#([A-Za-z_][A-Za-z0-9_]*)")
_SPECIAL = re.compile(r"[0-9]+(?:[:-].*)?|[@*#?$!-].*", re.DOTALL)
_CAT = re.compile(
    r"(?:(?:sudo\s+)?(?:/bin/)?cat(?:\s+--)?\s|<)\s*(?P<file>[^|;&<>]+?)\s*(?:\|\s*(?:tr|xargs|head|tail|sed|cut|awk)\b[^;&]*)?",
    re.DOTALL,
)
_NAMED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_LONGEST = 200_000

Variables = dict[str, "str | UnresolvedError"]


@dataclass(frozen=True, slots=True)
class ShellEnvironment:
    """What the reader's own shell would know."""

    home: str
    directory: str
    user: str | None = None


@dataclass(slots=True)
class Expander:
    """Expands words; what only the client can know becomes a reference (`syntax.mark`)."""

    environment: ShellEnvironment
    report: Report
    variables: Variables = field(default_factory=dict)
    references: list[Reference] = field(default_factory=list)
    meant: dict[str, str] = field(default_factory=dict)
    """Assignments in front of the command: bash sets them too late for its words, and that is never what was meant."""
    _open: list[str] = field(default_factory=list)

    def fields(self, word: Word) -> list[ExpandedWord]:
        """One word as none, one or several: braces are expanded, and what unquoted variables stand for is split."""
        words = expand_braces(word)
        if len(words) > 1:
            self.report.add(
                SPELLING, f"bash makes {len(words)} words of the braces here", "so they were read", word.place
            )
        return [one for each in words for one in self._split_fields(each)]

    def _split_fields(self, word: Word) -> list[ExpandedWord]:
        pieces: list[str] = [""]
        said = False
        for text, quoted in self._pieces(self._tilde(word), word.place):
            said = said or quoted or bool(text)
            first, *more = [text] if quoted else _split(text)
            pieces[-1] += first
            pieces += more
            if sum(map(len, pieces)) > _LONGEST:
                raise UnresolvedError("the text expands without end", word.place)
        found = [ExpandedWord(piece, word.place) for piece in pieces if piece]
        return found or ([ExpandedWord("", word.place)] if said and _all_quoted(word) else [])

    def text(self, parts: Iterable[Part], place: TextPosition) -> str:
        """Parts as one text, unsplit: the value of an assignment."""
        pieces: list[str] = []
        length = 0
        for text, _ in self._pieces(parts, place):
            length += len(text)
            if length > _LONGEST:
                raise UnresolvedError("the text expands without end", place)
            pieces.append(text)
        return "".join(pieces)

    def add_reference(self, reference: Reference) -> str:
        """What stands for a value that is read at launch."""
        if reference not in self.references:
            self.references.append(reference)
        return reference_mark(self.references.index(reference))

    def _tilde(self, word: Word) -> tuple[Part, ...]:
        if not word.bare:
            return word.parts
        named = _NAMED.match(word.parts[0].text)
        return self.with_home(word.parts) if named is None else self.with_homes(word.parts, named.end())

    def with_homes(self, parts: tuple[Part, ...], start: int) -> tuple[Part, ...]:
        """A value behind `NAME=`, from `start` in its first part: bash puts the home directory for each `~` at its
        beginning and behind a colon, in a word of a command too."""
        first = parts[0]
        value = re.sub(r"(?:^|(?<=:))~(?=[/:]|$)", lambda _: self.environment.home, first.text[start:])
        others = (
            part if part.kind != "text" or part.quoted else part._replace(text=self._behind_colons(part.text))
            for part in parts[1:]
        )
        return (first._replace(text=first.text[:start] + value), *others)

    def _behind_colons(self, text: str) -> str:
        return re.sub(r"(?<=:)~(?=[/:]|$)", lambda _: self.environment.home, text)

    def with_home(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Parts whose first begins with `~`, with the home directory in its place."""
        first = parts[0] if parts else None
        if first is None or first.kind != "text" or first.quoted or not re.match(r"~(?=/|$)", first.text):
            return parts
        return (Part("text", self.environment.home, quoted=True), first._replace(text=first.text[1:]), *parts[1:])

    def _pieces(self, parts: Iterable[Part], place: TextPosition) -> Iterator[tuple[str, bool]]:
        """Texts, and whether each may not be split. Literal text of a word has no blanks left to split at."""
        for part in parts:
            match part.kind:
                case "text":
                    yield part.text, True if part.text.strip() else part.quoted
                case "variable":
                    yield self._variable(part, _at(part, place)), part.quoted
                case "command":
                    yield self._command(part, _at(part, place)), True
                case "program":
                    raise UnresolvedError(f"{part.text} has to be computed", place)

    def _variable(self, part: Part, place: TextPosition) -> str:
        found = _FORM.fullmatch(part.text)
        if found is None:
            return self._computed(part, place)
        name, operator, behind = found.groups()
        value = self._value(name)
        if isinstance(value, UnresolvedError):
            raise value
        if operator is None:
            return self._unset(name, place) if value is None else value
        return self._by_operator(part, name, (operator, behind), value, place)

    def _computed(self, part: Part, place: TextPosition) -> str:
        """What bash makes of a value that stands in the text; Stop for one that does not, and for what is not read."""
        counted, found = _LENGTH.fullmatch(part.text), _COMPUTED.fullmatch(part.text)
        form = counted or found
        if form is None:
            special = _SPECIAL.fullmatch(part.text)
            what = "arguments of the script" if special else "a bash array or a text that bash computes"
            raise UnresolvedError(f"${{{shorten(part.text, 30)}}} is {what}", place)
        value = self._value(form[1])
        if isinstance(value, UnresolvedError):
            raise value
        if value is None or OPEN in value:
            raise UnresolvedError(
                f"${{{shorten(part.text, 30)}}} is computed of {form[1]}, which the text does not say", place
            )
        made = str(len(value)) if found is None else self._made(part, found, value, place)
        if made is None:
            raise UnresolvedError(f"${{{shorten(part.text, 30)}}} is a text that bash computes", place)
        return made

    def _made(self, part: Part, found: re.Match[str], value: str, place: TextPosition) -> str | None:
        _, operator, behind = found.groups()
        match operator[0]:
            case ":":
                return slice_value(value, behind)
            case "^" | ",":
                return None if behind else change_case(value, operator)
            case "/":
                old, _, new = behind.partition("/")
                plain = not re.search(r"[\\*?\[\"'$]", old) and old[:1] not in "#%" and not re.search(r"[\\&\"'$]", new)
                return replace(value, old, new, every=len(operator) == 2) if plain and old else None
            case _:
                glob = parse_pattern(list(self._signs(part, behind, place)))
                return None if glob is None else trim(value, operator, glob)

    def _signs(self, part: Part, behind: str, place: TextPosition) -> Iterator[tuple[str, bool]]:
        """The texts of a pattern, and whether each is quoted: its quotes are quotes in double quotes too."""
        for each in self._lexer(part, behind).inside(quoted=False):
            yield (each.text, each.quoted) if each.kind == "text" else (self.text((each,), place), each.quoted)

    def _lexer(self, part: Part, behind: str) -> Lexer:
        """For the word with which the inside of `${…}` ends."""
        source, end = part.source or SourceText(part.text), len(part.text)
        return Lexer(source.part(end - len(behind), end), self.report, len(self._open) + 1)

    def _by_operator(self, part: Part, name: str, form: tuple[str, str], value: str | None, place: TextPosition) -> str:
        operator, behind = form
        unset = value is None or (operator[0] == ":" and not value)
        if operator[-1] == "+":
            return "" if unset else self._behind(part, behind, name)
        if not unset and value is not None:
            return value
        if operator[-1] == "?":
            return self._unset(name, place)
        given = self._behind(part, behind, name)
        if operator[-1] == "=":
            self.variables[name] = given
        return given

    def _behind(self, part: Part, behind: str, name: str) -> str:
        """The word behind `:-`, expanded."""
        if name in self._open or len(self._open) > 20:
            raise UnresolvedError(f"${{{name}}} stands for itself", None)
        lexer = self._lexer(part, behind)
        self._open.append(name)
        try:
            parts = lexer.inside(quoted=part.quoted)
            return self.text(parts if part.quoted else self.with_home(parts), lexer.source.place(0))
        finally:
            self._open.pop()

    def _value(self, name: str) -> str | UnresolvedError | None:
        if name in self.variables:
            return self.variables[name]
        known = {"HOME": self.environment.home, "PWD": self.environment.directory, "USER": self.environment.user}
        return known.get(name)

    def _unset(self, name: str, place: TextPosition) -> str:
        if name in self.meant:
            message = f"{name} is set in front of this command, where bash sets it too late for the command's own words"
            self.report.add(UNSET, message, "read with that value", place)
            return self.meant[name]
        return self.add_reference(Reference("env", name))

    def _command(self, part: Part, place: TextPosition) -> str:
        inner = part.text.strip()
        if inner in ("pwd", "pwd -P"):
            return self.environment.directory
        found = _CAT.fullmatch(inner)
        words = list(Lexer(SourceText(found["file"]), self.report, 1).tokens()) if found else []
        if len(words) != 1 or isinstance(words[0], Operator):
            raise UnresolvedError(f"$({shorten(inner, 40)}) has to be run to be known", place)
        return self.add_reference(Reference("file", self._file(words[0])))

    def _file(self, word: Word) -> str:
        """The path of a file that holds a value; the home directory stays `~`."""
        path = word.plain if word.plain.startswith("~/") else self.text(word.parts, word.place)
        return path.replace(self.environment.home, "~", 1) if path.startswith(self.environment.home + "/") else path


def _at(part: Part, place: TextPosition) -> TextPosition:
    return part.source.place(0) if part.source is not None else place


def _split(text: str) -> list[str]:
    """The first piece joins what stands before, the last what follows: `a b ` is `a`, `b` and an empty one."""
    return re.split(r"\s+", text)


def _all_quoted(word: Word) -> bool:
    return any(part.quoted for part in word.parts)
