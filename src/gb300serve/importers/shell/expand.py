"""Expand words as bash does: variables of the text and their defaults, `~`, braces. Files are never read."""

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
    """A piece of a glob pattern: a literal character (`char`), `?` (`one`), `*` (`any`) or a class."""

    kind: str
    characters: str = ""

    def matches(self, character: str) -> bool:
        match self.kind:
            case "one":
                return True
            case "class":
                return _is_in_class(self.characters, character)
            case _:
                return character == self.characters


def parse_pattern(pieces: list[tuple[str, bool]]) -> list[Glob] | None:
    """The pattern of texts, each with whether it is quoted and thus literal. None for a class that is not closed or has
    a name (`[:alpha:]`)."""
    characters = [(character, quoted) for text, quoted in pieces for character in text]
    globs: list[Glob] = []
    at = 0
    while at < len(characters):
        character, quoted = characters[at]
        if (character, quoted) == ("[", False):
            end = _closing(characters, at)
            inner = "".join(inside for inside, _ in characters[at + 1 : end])
            if end is None or "[:" in inner:
                return None
            globs.append(Glob("class", inner))
            at = end
        elif not quoted and character in "*?":
            globs.append(Glob("any" if character == "*" else "one"))
        else:
            globs.append(Glob("char", character))
        at += 1
    return globs


def _closing(characters: list[tuple[str, bool]], start: int) -> int | None:
    """The index of the end of a class: a leading `]` is a member of the class."""
    first = start + 1 + (characters[start + 1 : start + 2] in ([("!", False)], [("^", False)]))
    return next((at for at in range(first + 1, len(characters)) if characters[at] == ("]", False)), None)


def trim(value: str, operator: str, glob: list[Glob]) -> str | None:
    """`value` without the shortest (`#`, `%`) or longest (`##`, `%%`) match at its start or end; None above a limit."""
    if len(value) > _LONGEST_COMPUTED or len(value) * len(glob) > _LONGEST_COMPUTED * 64:
        return None
    front = operator[0] == "#"
    lengths = _lengths(value if front else value[::-1], glob if front else glob[::-1])
    if not lengths:
        return value
    length = lengths[0] if len(operator) == 1 else lengths[-1]
    return value[length:] if front else value[: len(value) - length]


def change_case(value: str, operator: str) -> str:
    """`^^`, `^`, `,,`, `,`."""
    change = str.upper if operator[0] == "^" else str.lower
    return change(value) if len(operator) == 2 else change(value[:1]) + value[1:]


def slice_value(value: str, argument: str) -> str | None:
    """`${X:offset}` and `${X:offset:length}`; None unless these are numbers."""
    match = _SLICE.fullmatch(argument)
    if match is None or argument.startswith("-"):
        return None
    offset, length = int(match[1]), match[2]
    begin = max(offset + len(value), 0) if offset < 0 else offset
    if offset < -len(value):
        return ""
    if length is None:
        return value[begin:]
    end = begin + int(length) if int(length) >= 0 else len(value) + int(length)
    return value[begin:end] if end >= begin else None


def _lengths(value: str, glob: list[Glob]) -> list[int]:
    """The lengths of all prefixes of `value` that match the whole pattern, the shortest first."""
    at = _skip_stars({0}, glob)
    lengths = [0] if len(glob) in at else []
    for length, character in enumerate(value, 1):
        reached = (n for n in at if n < len(glob) and (glob[n].kind == "any" or glob[n].matches(character)))
        at = _skip_stars({n + (glob[n].kind != "any") for n in reached}, glob)
        if len(glob) in at:
            lengths.append(length)
        if not at:
            break
    return lengths


def _skip_stars(at: set[int], glob: list[Glob]) -> set[int]:
    """`at`, and every index that is reached from there by stars that match nothing."""
    reached = set(at)
    for index, piece in enumerate(glob):
        if piece.kind == "any" and index in reached:
            reached.add(index + 1)
    return reached


def _is_in_class(members: str, character: str) -> bool:
    negated = members[0] in "!^"
    body, at, is_member = members[negated:], 0, False
    while at < len(body):
        if body[at + 1 : at + 2] == "-" and at + 2 < len(body):
            is_member = is_member or body[at] <= character <= body[at + 2]
            at += 3
        else:
            is_member = is_member or body[at] == character
            at += 1
    return is_member != negated


_FORM = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:(:?[-=?+])(.*))?", re.DOTALL)
_COMPUTED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(##?|%%?|//?|\^\^?|,,?|:)(.*)", re.DOTALL)
_LENGTH = re.compile(r"#([A-Za-z_][A-Za-z0-9_]*)")
_SPECIAL = re.compile(r"[0-9]+(?:[:-].*)?|[@*#?$!-].*", re.DOTALL)
_CAT = re.compile(
    r"(?:(?:sudo\s+)?(?:/bin/)?cat(?:\s+--)?\s|<)\s*(?P<file>[^|;&<>]+?)\s*(?:\|\s*(?:tr|xargs|head|tail|sed|cut|awk)\b[^;&]*)?",
    re.DOTALL,
)
_NAMED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_MAX_LENGTH = 200_000
_TOO_LONG = f"the text expands to more than {_MAX_LENGTH:,} characters"

Variables = dict[str, str | UnresolvedError]


@dataclass(frozen=True, slots=True)
class ShellEnvironment:
    """What the shell of the user provides."""

    home: str
    directory: str
    user: str | None = None


@dataclass(slots=True)
class Expander:
    """Expands words; values that are known only at launch become references."""

    environment: ShellEnvironment
    report: Report
    variables: Variables = field(default_factory=dict)
    references: list[Reference] = field(default_factory=list)
    command_variables: dict[str, str] = field(default_factory=dict)
    """Assignments before the command word: bash expands the words first, which is never intended."""
    _open: list[str] = field(default_factory=list)

    def fields(self, word: Word) -> list[ExpandedWord]:
        """The words that a word expands to: braces are expanded, unquoted variables are split."""
        words = expand_braces(word)
        if len(words) > 1:
            self.report.add(SPELLING, f"bash expands the braces to {len(words)} words", "read the same way", word.place)
        return [field for expanded in words for field in self._split_fields(expanded)]

    def _split_fields(self, word: Word) -> list[ExpandedWord]:
        pieces: list[str] = [""]
        is_word = False
        for text, quoted in self._pieces(self._tilde(word), word.place):
            is_word = is_word or quoted or bool(text)
            first, *more = [text] if quoted else re.split(r"\s+", text)
            pieces[-1] += first
            pieces += more
            if sum(map(len, pieces)) > _MAX_LENGTH:
                raise UnresolvedError(_TOO_LONG, word.place)
        fields = [ExpandedWord(piece, word.place) for piece in pieces if piece]
        return fields or ([ExpandedWord("", word.place)] if is_word and any(part.quoted for part in word.parts) else [])

    def text(self, parts: Iterable[Part], place: TextPosition) -> str:
        """Parts as one unsplit text, as the value of an assignment."""
        pieces: list[str] = []
        length = 0
        for text, _ in self._pieces(parts, place):
            length += len(text)
            if length > _MAX_LENGTH:
                raise UnresolvedError(_TOO_LONG, place)
            pieces.append(text)
        return "".join(pieces)

    def add_reference(self, reference: Reference) -> str:
        """The mark of a value that is read at launch."""
        if reference not in self.references:
            self.references.append(reference)
        return reference_mark(self.references.index(reference))

    def _tilde(self, word: Word) -> tuple[Part, ...]:
        if not word.bare:
            return word.parts
        assignment = _NAMED.match(word.parts[0].text)
        return self.with_home(word.parts) if assignment is None else self.with_homes(word.parts, assignment.end())

    def with_homes(self, parts: tuple[Part, ...], start: int) -> tuple[Part, ...]:
        """The value of `NAME=`, from `start` in its first part: bash expands `~` at the start and after each colon."""
        first = parts[0]
        value = re.sub(r"(?:^|(?<=:))~(?=[/:]|$)", lambda _: self.environment.home, first.text[start:])
        others = (
            part if part.kind != "text" or part.quoted else part._replace(text=self._expand_after_colons(part.text))
            for part in parts[1:]
        )
        return (first._replace(text=first.text[:start] + value), *others)

    def _expand_after_colons(self, text: str) -> str:
        return re.sub(r"(?<=:)~(?=[/:]|$)", lambda _: self.environment.home, text)

    def with_home(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Parts whose first begins with `~`, with the home directory in its place."""
        first = parts[0] if parts else None
        if first is None or first.kind != "text" or first.quoted or not re.match(r"~(?=/|$)", first.text):
            return parts
        return (Part("text", self.environment.home, quoted=True), first._replace(text=first.text[1:]), *parts[1:])

    def _pieces(self, parts: Iterable[Part], place: TextPosition) -> Iterator[tuple[str, bool]]:
        """Texts, each with whether it must not be split. Literal text contains no spaces to split at."""
        for part in parts:
            match part.kind:
                case "text":
                    yield part.text, True if part.text.strip() else part.quoted
                case "variable":
                    yield self._variable(part, _at(part, place)), part.quoted
                case "command":
                    yield self._command(part, _at(part, place)), True
                case "program":
                    raise UnresolvedError(f"{part.text} cannot be evaluated without bash", place)

    def _variable(self, part: Part, place: TextPosition) -> str:
        match = _FORM.fullmatch(part.text)
        if match is None:
            return self._computed(part, place)
        name, operator, argument = match.groups()
        value = self._value(name)
        if isinstance(value, UnresolvedError):
            raise value
        if operator is None:
            return self._unset(name, place) if value is None else value
        return self._by_operator(part, name, (operator, argument), value, place)

    def _computed(self, part: Part, place: TextPosition) -> str:
        """The result of an expansion such as `${A%x}`. Raises UnresolvedError if its value is not known."""
        expansion, match = f"${{{shorten(part.text, 30)}}}", _COMPUTED.fullmatch(part.text)
        form = _LENGTH.fullmatch(part.text) or match
        if form is None:
            is_argument = _SPECIAL.fullmatch(part.text)
            kind = "an argument of the script" if is_argument else "a bash array or an unsupported expansion"
            raise UnresolvedError(f"{expansion} is {kind}", place)
        value = self._value(form[1])
        if isinstance(value, UnresolvedError):
            raise value
        if value is None or OPEN in value:
            raise UnresolvedError(f"{expansion} depends on {form[1]}, which the text does not set", place)
        result = str(len(value)) if match is None else self._apply_operator(part, match, value, place)
        if result is None:
            raise UnresolvedError(f"{expansion} cannot be evaluated without bash", place)
        return result

    def _apply_operator(self, part: Part, form: re.Match[str], value: str, place: TextPosition) -> str | None:
        _, operator, argument = form.groups()
        match operator[0]:
            case ":":
                return slice_value(value, argument)
            case "^" | ",":
                return None if argument else change_case(value, operator)
            case "/":
                old, _, new = argument.partition("/")
                plain = not re.search(r"[\\*?\[\"'$]", old) and old[:1] not in "#%" and not re.search(r"[\\&\"'$]", new)
                return value.replace(old, new, -1 if len(operator) == 2 else 1) if plain and old else None
            case _:
                glob = parse_pattern(list(self._pattern_pieces(part, argument, place)))
                return None if glob is None else trim(value, operator, glob)

    def _pattern_pieces(self, part: Part, argument: str, place: TextPosition) -> Iterator[tuple[str, bool]]:
        """The texts of a pattern, each with whether it is quoted. Quotes count even inside double quotes."""
        for piece in self._lexer(part, argument).inside(quoted=False):
            yield (piece.text if piece.kind == "text" else self.text((piece,), place)), piece.quoted

    def _lexer(self, part: Part, argument: str) -> Lexer:
        """A lexer for the argument at the end of `${…}`."""
        source, end = part.source or SourceText(part.text), len(part.text)
        return Lexer(source.part(end - len(argument), end), self.report, len(self._open) + 1)

    def _by_operator(self, part: Part, name: str, form: tuple[str, str], value: str | None, place: TextPosition) -> str:
        operator, argument = form
        unset = value is None or (operator[0] == ":" and not value)
        if operator[-1] == "+":
            return "" if unset else self._argument(part, argument, name)
        if not unset and value is not None:
            return value
        if operator[-1] == "?":
            return self._unset(name, place)
        default = self._argument(part, argument, name)
        if operator[-1] == "=":
            self.variables[name] = default
        return default

    def _argument(self, part: Part, argument: str, name: str) -> str:
        """The expanded word after `:-`."""
        if name in self._open or len(self._open) > 20:
            raise UnresolvedError(f"${{{name}}} refers to itself", None)
        lexer = self._lexer(part, argument)
        self._open.append(name)
        try:
            parts = lexer.inside(quoted=part.quoted)
            return self.text(parts if part.quoted else self.with_home(parts), lexer.source.place(0))
        finally:
            self._open.pop()

    def _value(self, name: str) -> str | UnresolvedError | None:
        if name in self.variables:
            return self.variables[name]
        environment = self.environment
        return {"HOME": environment.home, "PWD": environment.directory, "USER": environment.user}.get(name)

    def _unset(self, name: str, place: TextPosition) -> str:
        if name in self.command_variables:
            message = f"{name} is set before the command on the same line, but bash expands the arguments first"
            self.report.add(UNSET, message, "read with that value; set it on a line of its own", place)
            return self.command_variables[name]
        return self.add_reference(Reference("env", name))

    def _command(self, part: Part, place: TextPosition) -> str:
        inner = part.text.strip()
        if inner in ("pwd", "pwd -P"):
            return self.environment.directory
        match = _CAT.fullmatch(inner)
        words = list(Lexer(SourceText(match["file"]), self.report, 1).tokens()) if match else []
        if len(words) != 1 or isinstance(words[0], Operator):
            raise UnresolvedError(f"the output of $({shorten(inner, 40)}) is not known without running it", place)
        return self.add_reference(Reference("file", self._file(words[0])))

    def _file(self, word: Word) -> str:
        """The path of a file with a value; the home directory is written as `~`."""
        path = word.plain if word.plain.startswith("~/") else self.text(word.parts, word.place)
        return path.replace(self.environment.home, "~", 1) if path.startswith(self.environment.home + "/") else path


def _at(part: Part, place: TextPosition) -> TextPosition:
    return part.source.place(0) if part.source is not None else place
