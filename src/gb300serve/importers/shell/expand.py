"""Expand words as bash does: variables, arrays and arguments of the text, defaults, `~`, braces, arithmetic."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from gb300serve.importers.report import SPELLING, UNSET, Report, TextPosition, UnresolvedError, shorten
from gb300serve.importers.shell.lexer import Lexer
from gb300serve.importers.shell.operators import (
    Arithmetic,
    ArithmeticSyntaxError,
    change_case,
    parse_pattern,
    replace_pattern,
    slice_value,
    split_replacement,
    trim,
    with_home,
    with_homes,
)
from gb300serve.importers.shell.words import (
    OF_THE_SHELL,
    OPEN,
    ExpandedWord,
    Operator,
    Part,
    Piece,
    Reference,
    ShellArray,
    ShellEnvironment,
    SourceText,
    Variable,
    Variables,
    Word,
    expand_braces,
    reference_mark,
)

_PARAMETER = re.compile(r"(?P<name>[A-Za-z_]\w*|\d+|[@*#?$!-])(?:\[(?P<index>[^\]]*)\])?(?P<rest>.*)", re.DOTALL)
_LENGTH = re.compile(r"#(?P<name>[A-Za-z_]\w*|\d+|[@*])(?:\[(?P<index>[^\]]*)\])?")
_DEFAULT = re.compile(r"(:?)([-=?+])(.*)", re.DOTALL)
_COMPUTED = re.compile(r"(##?|%%?|//|/[#%]?|\^\^?|,,?|:)(.*)", re.DOTALL)
_CAT = re.compile(
    r"(?:(?:sudo\s+)?(?:/bin/)?cat(?:\s+--)?\s|(?:tr\s+-d\s+(?:'[^']*'|\"[^\"]*\"|\S+)\s+|head\s+-(?:n\s*)?1\s+|xargs\s+)?<)"
    r"\s*(?P<file>[^|;&<>]+?)\s*(?:\|\s*(?:tr|xargs|head|tail|sed|cut|awk)\b[^;&]*)?",
    re.DOTALL,
)
_CHANGED = re.compile(
    r"\b([A-Za-z_]\w*)(?:\[[^\]]*\])?\s*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--)\s*([A-Za-z_]\w*)"
)
_NAMED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_MAX_FORGOTTEN = 300
NOT_RUN = "is not known without running it"
_MAX_LENGTH = 200_000
_TOO_LONG = f"the text expands to more than {_MAX_LENGTH:,} characters"

_END = Piece("", ends=True)
_NO_ELEMENTS = Piece("", splits=True, is_empty_list=True)
_BLANKS = " \t\n"


@dataclass(slots=True)
class Expander:
    """Expands words; values that are known only at launch become references."""

    environment: ShellEnvironment
    report: Report
    variables: Variables = field(default_factory=Variables)
    references: list[Reference] = field(default_factory=list)
    command_variables: dict[str, str] = field(default_factory=dict)
    """Assignments before the command word: bash expands the words first, which is never intended."""
    substitute: Callable[[SourceText, TextPosition], str] | None = None
    """Computes the output of `$(…)`; raises UnresolvedError if it is not known."""
    assuming: bool = False
    """Whether a variable that the text does not set is read as unset, as in a condition."""
    assumed: set[str] = field(default_factory=set)
    """The variables and arguments that were read as unset."""
    absent: list[tuple[str, TextPosition]] = field(default_factory=list)
    """The files of settings that are not here."""
    unset: dict[str, TextPosition] = field(default_factory=dict)
    """The variables without a default that a condition read as unset."""
    arguments_read: list[TextPosition] = field(default_factory=list)
    """Where the arguments of the text were read, which it does not contain."""
    _forgotten: int = 0
    _open: list[str] = field(default_factory=list)
    _warned: set[str] = field(default_factory=set)

    def fields(self, word: Word) -> list[ExpandedWord]:
        """The words that a word expands to: braces are expanded, unquoted variables are split."""
        words = expand_braces(word)
        if len(words) > 1:
            self.report.add(SPELLING, f"bash expands the braces to {len(words)} words", "read the same way", word.place)
        return [field for expanded in words for field in self._split_fields(expanded)]

    def _split_fields(self, word: Word) -> list[ExpandedWord]:
        found: list[str] = []
        text, exists, is_empty_list, length = "", False, False, 0
        for piece in self._pieces(self._tilde(word), word.place):
            first, *more = self._split(piece, word.place) if piece.splits else [piece.text]
            text += first
            exists = exists or bool(first) or not (piece.splits or piece.ends)
            is_empty_list = is_empty_list or piece.is_empty_list
            for following in more:
                if exists:
                    found.append(text)
                text, exists = following, bool(following)
            if piece.ends and exists:
                found.append(text)
            if piece.ends:
                text, exists = "", False
            length += len(piece.text)
            if length > _MAX_LENGTH:
                raise UnresolvedError(_TOO_LONG, word.place)
        if exists and (text or found or not is_empty_list):
            found.append(text)
        return [ExpandedWord(text, word.place) for text in found]

    def _split(self, piece: Piece, place: TextPosition) -> list[str]:
        variable = self.variables.get("IFS")
        separators = variable.value if variable is not None and isinstance(variable.value, str) else _BLANKS
        if any(separator in piece.text for separator in separators if separator not in _BLANKS):
            raise UnresolvedError("only bash knows how this word is split: the text sets IFS", place)
        return re.split(f"[{re.escape(separators)}]+", piece.text) if separators else [piece.text]

    def text(self, parts: Iterable[Part], place: TextPosition) -> str:
        """Parts as one unsplit text, as the value of an assignment."""
        pieces: list[str] = []
        length = 0
        for piece in self._pieces(parts, place):
            length += len(piece.text)
            if length > _MAX_LENGTH:
                raise UnresolvedError(_TOO_LONG, place)
            pieces.append(f"{piece.text} " if piece.ends else piece.text)
        return "".join(pieces)

    def pattern_pieces(self, word: Word) -> list[tuple[str, bool]]:
        """The texts of a word that is a pattern, each with whether it is literal."""
        pieces = ((part, self._pieces((part,), word.place)) for part in self._tilde(word))
        return [(piece.text, part.quoted) for part, expanded in pieces for piece in expanded]

    def document(self, text: str, place: TextPosition) -> str:
        """The body of a here-document, expanded."""
        source = SourceText(text, fixed=place)
        return self.text(Lexer(source, self.report, 1).inside(quoted=True, literal_quotes=True), place)

    def arithmetic(self, source: SourceText, place: TextPosition) -> int:
        """The value of an expression."""
        try:
            text = self.text(Lexer(source, self.report, len(self._open) + 1).inside(quoted=True), place)
            return Arithmetic(text, lambda name: self._number(name, place), self._assign_number).result()
        except ArithmeticSyntaxError as error:
            reason = f"$(({shorten(source.text, 40)})) cannot be evaluated without bash"
            raise self._not_computed(source, UnresolvedError(reason, place)) from error
        except UnresolvedError as error:
            raise self._not_computed(source, error) from error

    def _not_computed(self, source: SourceText, error: UnresolvedError) -> UnresolvedError:
        """What the expression would assign is not known either."""
        for match in _CHANGED.finditer(source.text):
            self.variables[match[1] or match[2]] = Variable(error)
        return error

    def _number(self, name: str, place: TextPosition) -> str:
        value = self._fetch(name, None, place)
        if value is None and (name in self.variables or self.assuming):
            return ""
        if value is None or OPEN in value[0]:
            raise UnresolvedError(f"the arithmetic depends on {name}, which the text does not set", place)
        return value[0]

    def _assign_number(self, name: str, value: str) -> None:
        before = self.variables.get(name)
        self.variables[name] = Variable(value, exported=before is not None and before.exported)

    @contextmanager
    def assume(self) -> Iterator[set[str]]:
        """Read what the text does not set as unset, and note it."""
        outer = self.assuming, self.assumed
        self.assuming, self.assumed = True, set()
        try:
            yield self.assumed
        finally:
            self.assuming, self.assumed = outer

    def count_forgotten(self, place: TextPosition) -> None:
        """Limit how often all variables are searched for what became unknown."""
        self._forgotten += 1
        if self._forgotten > _MAX_FORGOTTEN:
            raise UnresolvedError("too many commands decide whether variables are known", place)

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
        """The value of `NAME=`, from `start` in its first part, with the home directory in place of each `~`."""
        return with_homes(parts, start, self.environment.home)

    def with_home(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Parts whose first begins with `~`, with the home directory in its place."""
        return with_home(parts, self.environment.home)

    def _pieces(self, parts: Iterable[Part], place: TextPosition, *, is_default: bool = False) -> Iterator[Piece]:
        """The pieces of parts. Literal text is split only in the default of an expansion."""
        for part in parts:
            at = part.source.place(0) if part.source is not None else place
            match part.kind:
                case "text":
                    yield Piece(part.text, splits=not part.quoted and (is_default or not part.text.strip()))
                case "variable":
                    yield from self._expansion(part, at)
                case "command":
                    yield Piece(self._command(part, at), splits=not part.quoted)
                case "arithmetic":
                    yield Piece(str(self.arithmetic(part.source or SourceText(part.text), at)))
                case "array" | "program":
                    raise UnresolvedError(f"{part.text or 'an array'} cannot be evaluated without bash", at)

    def _expansion(self, part: Part, place: TextPosition) -> Iterator[Piece]:
        """The pieces of `${…}`."""
        if (length := _LENGTH.fullmatch(part.text)) is not None:
            yield Piece(self._length(length, part, place))
            return
        form = _PARAMETER.fullmatch(part.text)
        if form is None or (form["name"] in "?$!-" and form["rest"]):
            raise self._unsupported(part, place)
        name, index, rest = form["name"], form["index"], form["rest"]
        is_list = name in ("@", "*") or index in ("@", "*")
        if not rest and not is_list:
            value = self._fetch(name, index, place)
            yield Piece(self._unset(name, part, place) if value is None else value[0], splits=not part.quoted)
        elif default := _DEFAULT.fullmatch(rest):
            yield from self._with_default(part, (name, index), default, place)
        else:
            values = self._fetch(name, index, place) or []
            if rest:
                values = self._compute(part, values, (name, index, rest), place)
            if not is_list:
                yield Piece(values[0], splits=not part.quoted)
            else:
                yield from self._as_list(values, part, index or name)

    def _as_list(self, values: Sequence[str], part: Part, mark: str) -> Iterator[Piece]:
        """The elements of an array: a field for each, or with `*` in quotes a single one."""
        if mark == "*" and part.quoted:
            variable = self.variables.get("IFS")
            separator = variable.value[:1] if variable is not None and isinstance(variable.value, str) else " "
            yield Piece(separator.join(values))
            return
        if not values and part.quoted:
            yield _NO_ELEMENTS
        for number, value in enumerate(values):
            if number:
                yield _END
            yield Piece(value, splits=not part.quoted)

    def _length(self, form: re.Match[str], part: Part, place: TextPosition) -> str:
        name, index = form["name"], form["index"]
        value = self._fetch(name, index, place)
        if name in ("@", "*") or index in ("@", "*"):
            return str(len(value or ()))
        if value is None and (name in self.variables or self.assuming):
            return "0"
        if value is None or OPEN in value[0]:
            raise UnresolvedError(f"${{{part.text}}} depends on {name}, which the text does not set", place)
        return str(len(value[0]))

    def _unsupported(self, part: Part, place: TextPosition) -> UnresolvedError:
        return UnresolvedError(f"${{{shorten(part.text, 40)}}} cannot be evaluated without bash", place)

    def _fetch(self, name: str, index: str | None, place: TextPosition) -> list[str] | None:
        """The value of a variable, or the elements of an array; None if it is not set."""
        if name.isdigit() or name in "@*#":
            return self._arguments(name, place)
        if name in "?$!-":
            raise UnresolvedError(f"${name} is known only when the text runs", place)
        variable = self.variables.get(name)
        if variable is None:
            return self._from_caller(name, place)
        self.assumed |= variable.assumed
        if variable.doubt is not None:
            self._warn_of_file(name, self.absent[variable.doubt], "its value in the text was used", place)
        value = variable.value
        if isinstance(value, UnresolvedError):
            raise value
        if not isinstance(value, ShellArray):
            return [value] if isinstance(value, str) and index in (None, "@", "*", "0") else None
        if index in ("@", "*"):
            if value.is_associative and len(value.items) > 1:
                raise UnresolvedError(f"the order of {name} is known only to bash", place)
            return value.values()
        element = value.items.get(self.subscript(value, index or "0", place))
        return None if element is None else [element]

    def subscript(self, array: ShellArray, index: str, place: TextPosition) -> int | str:
        """The key of an element: text, or a number that may count from the end."""
        source = SourceText(index, fixed=place)
        if array.is_associative:
            return self.text(Lexer(source, self.report, 1).inside(quoted=False), place)
        number = self.arithmetic(source, place)
        return number if number >= 0 else max((int(key) for key in array.items), default=-1) + 1 + number

    def arguments(self, place: TextPosition) -> list[str]:
        """`$1`, `$2` and so on."""
        return self._arguments("@", place) or []

    def _arguments(self, name: str, place: TextPosition) -> list[str] | None:
        if name == "0":
            if self.environment.script is None and not self.assuming:
                message = "$0 is the path of the script, and the text is not a file"
                hint = f"read as a script in {self.environment.directory}"
                self.report.add(UNSET, message, hint, place)
            return [self.environment.script or "./script"]
        variable = self.variables.get("@")
        if variable is None:
            self.assumed.add(f"${name}")
            self.arguments_read.append(place)
            arguments = list[str]()
        elif isinstance(variable.value, UnresolvedError):
            raise variable.value
        else:
            self.assumed |= variable.assumed
            arguments = variable.value.values() if isinstance(variable.value, ShellArray) else []
        if name == "#":
            return [str(len(arguments))]
        if name in "@*":
            return arguments
        return arguments[int(name) - 1 : int(name)] or None

    def _from_caller(self, name: str, place: TextPosition) -> list[str] | None:
        """The value of a variable that the text does not set."""
        environment = self.environment
        known = {
            "HOME": environment.home, "PWD": environment.directory, "USER": environment.user,
        }.get(name)  # fmt: skip
        if name == "BASH_SOURCE":
            return self._arguments("0", place)
        if known is not None:
            return [known]
        if name in OF_THE_SHELL and (self.assuming or name not in ("SHELL", "TERM", "HOSTNAME")):
            raise UnresolvedError(f"${name} is known only when the text runs", place)
        self.assumed.add(name)
        return None

    def _with_default(
        self, part: Part, variable: tuple[str, str | None], form: re.Match[str], place: TextPosition
    ) -> Iterator[Piece]:
        """`${X:-default}`, and the same with `=`, `?` and `+`."""
        (name, index), colon, operator, argument = variable, *form.groups()
        values = self._fetch(name, index, place)
        is_list = name in ("@", "*") or index in ("@", "*")
        unset = not values or (colon and not any(values)) if is_list else values is None or (colon and not values[0])
        if operator == "+":
            if not unset:
                yield from self._argument(part, argument, name)
        elif not unset and values is not None:
            if is_list:
                yield from self._as_list(values, part, index or name)
            else:
                yield Piece(values[0], splits=not part.quoted)
        elif operator == "?" or (name.isdigit() and not argument):
            yield Piece(self._unset(name, part, place), splits=not part.quoted)
        else:
            self._warn_of_default(name, argument, place)
            default = list(self._argument(part, argument, name))
            if operator == "=":
                text = "".join(piece.text for piece in default)
                self.variables[name] = Variable(text, assumed=frozenset((name,)))
            yield from default

    def _warn_of_default(self, name: str, default: str, place: TextPosition) -> None:
        if self.absent and name not in self.variables:
            used = f"the default {shorten(default, 30)} was used" if default else None
            self._warn_of_file(name, self.absent[-1], used, place)

    def _warn_of_file(self, name: str, absent: tuple[str, TextPosition], used: str | None, place: TextPosition) -> None:
        if name not in self._warned and not self.assuming:
            self._warned.add(name)
            message = f"{name} may be set in {shorten(absent[0])} (line {absent[1].line}), which is not here"
            self.report.add(UNSET, message, used and f"{used}: compare it with the file", place)

    def _argument(self, part: Part, argument: str, name: str) -> Iterator[Piece]:
        if name in self._open or len(self._open) > 20:
            raise UnresolvedError(f"${{{name}}} refers to itself", None)
        lexer = self._lexer(part, argument)
        self._open.append(name)
        try:
            parts = lexer.inside(quoted=part.quoted)
            parts = parts if part.quoted else self.with_home(parts)
            yield from list(self._pieces(parts, lexer.source.place(0), is_default=not part.quoted))
        finally:
            self._open.pop()

    def _lexer(self, part: Part, argument: str) -> Lexer:
        source, end = part.source or SourceText(part.text), len(part.text)
        return Lexer(source.part(end - len(argument), end), self.report, len(self._open) + 1)

    def _compute(
        self, part: Part, values: list[str], form: tuple[str, str | None, str], place: TextPosition
    ) -> list[str]:
        """The values after an operator such as `%` or `/`; for an array, of each element."""
        name, index, rest = form
        match = _COMPUTED.fullmatch(rest)
        if match is None:
            raise self._unsupported(part, place)
        is_list = name in ("@", "*") or index in ("@", "*")
        if is_list and match[1] == ":":
            return self._slice(part, name, values, match[2], place)
        if not is_list and (not values or OPEN in values[0]):
            if not values and (name in self.variables or self.assuming):
                return [""]
            raise UnresolvedError(f"${{{part.text}}} depends on {name}, which the text does not set", place)
        found = [self._computed(part, match, value, place) for value in values]
        if any(value is None for value in found):
            raise self._unsupported(part, place)
        return [value for value in found if value is not None]

    def _slice(self, part: Part, name: str, values: list[str], argument: str, place: TextPosition) -> list[str]:
        """`${A[@]:offset:length}`: the elements from an index on."""
        offset, _, length = argument.partition(":")
        if not re.fullmatch(r"\s*\d{1,6}\s*", offset) or not re.fullmatch(r"\s*(?:\d{1,6})?\s*", length):
            raise self._unsupported(part, place)
        variable = self.variables.get(name)
        array = variable.value if variable is not None and isinstance(variable.value, ShellArray) else None
        if int(offset) == 0 and name in "@*":
            raise self._unsupported(part, place)
        first = 1 if name in "@*" else 0
        if array is not None and array.is_associative:
            raise self._unsupported(part, place)
        indexes = range(first, first + len(values)) if array is None or first else sorted(map(int, array.items))
        found = [value for index, value in zip(indexes, values, strict=True) if int(index) >= int(offset)]
        return found[: int(length)] if length.strip() else found

    def _computed(self, part: Part, form: re.Match[str], value: str, place: TextPosition) -> str | None:
        operator, argument = form.groups()
        match operator[0]:
            case ":":
                return slice_value(value, self.text(self._lexer(part, argument).inside(quoted=True), place))
            case "^" | ",":
                return None if argument else change_case(value, operator)
            case "/":
                old, new = split_replacement(argument)
                if re.search(r"[&\\]", new):
                    return None
                pattern = parse_pattern(self._pattern(part, old, len(argument), place))
                text = self.text(self._lexer(part, new).inside(quoted=False), place)
                return None if pattern is None or not pattern else replace_pattern(value, operator, pattern, text)
            case _:
                pattern = parse_pattern(self._pattern(part, argument, len(argument), place))
                return None if pattern is None else trim(value, operator, pattern)

    def _pattern(self, part: Part, pattern: str, before_end: int, place: TextPosition) -> list[tuple[str, bool]]:
        """The texts of a pattern, each with whether it is quoted. Quotes count even inside double quotes."""
        source, start = part.source or SourceText(part.text), len(part.text) - before_end
        lexer = Lexer(source.part(start, start + len(pattern)), self.report, len(self._open) + 1)
        return [
            (piece.text if piece.kind == "text" else self.text((piece,), place), piece.quoted)
            for piece in lexer.inside(quoted=False)
        ]

    def _unset(self, name: str, part: Part, place: TextPosition) -> str:
        """The text of a variable that is not set."""
        if name in self.command_variables:
            message = f"{name} is set before the command on the same line, but bash expands the arguments first"
            self.report.add(UNSET, message, "read with that value; set it on a line of its own", place)
            return self.command_variables[name]
        if self.assuming and name not in self.variables and not name.isdigit():
            self.unset.setdefault(name, place)
        if self.assuming or name in self.variables:
            return ""
        if name.isdigit():
            if "@" in self.variables:
                return ""
            raise UnresolvedError(f"${{{part.text}}} is an argument of the script", place)
        return self.add_reference(Reference("env", name, self.absent[-1] if self.absent else None))

    def _command(self, part: Part, place: TextPosition) -> str:
        inner = part.text.strip()
        match = _CAT.fullmatch(inner)
        words = list(Lexer(SourceText(match["file"]), self.report, 1).tokens()) if match else []
        if len(words) == 1 and not isinstance(words[0], Operator):
            return self.add_reference(Reference("file", self._file(words[0])))
        if self.substitute is None:
            raise UnresolvedError(f"the output of $({shorten(inner, 40)}) {NOT_RUN}", place)
        return self.substitute(part.source or SourceText(part.text, fixed=place), place)

    def _file(self, word: Word) -> str:
        """The path of a file with a value; the home directory is written as `~`."""
        path = word.plain if word.plain.startswith("~/") else self.text(word.parts, word.place)
        return path.replace(self.environment.home, "~", 1) if path.startswith(self.environment.home + "/") else path
