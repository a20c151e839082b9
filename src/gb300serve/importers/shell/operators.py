"""What bash computes: the patterns and operators of `${…}`, arithmetic, and conditions."""

import fnmatch
import re
from collections.abc import Callable, Sequence
from operator import add, and_, eq, ge, gt, le, lt, mul, ne, or_, sub, xor
from typing import NamedTuple

from gb300serve.importers.shell.words import Part

_LONGEST_COMPUTED = 4096
_LONGEST_REPLACED = 300  # a pattern with a star takes quadratic time
_SLICE = re.compile(r"\s*(-?\d{1,6})\s*(?::\s*(-?\d{1,6})\s*)?")


def with_homes(parts: tuple[Part, ...], start: int, home: str) -> tuple[Part, ...]:
    """The value of `NAME=`, from `start` in its first part: bash expands `~` at the start and after each colon."""
    first, *others = parts
    value = re.sub(r"(?:^|(?<=:))~(?=[/:]|$)", lambda _: home, first.text[start:])
    expanded = (
        part._replace(text=re.sub(r"(?<=:)~(?=[/:]|$)", lambda _: home, part.text))
        if part.kind == "text" and not part.quoted
        else part
        for part in others
    )
    return (first._replace(text=first.text[:start] + value), *expanded)


def with_home(parts: tuple[Part, ...], home: str) -> tuple[Part, ...]:
    """Parts whose first begins with `~`, with the home directory in its place."""
    first = parts[0] if parts else None
    if first is None or first.kind != "text" or first.quoted or not re.match(r"~(?=/|$)", first.text):
        return parts
    return (Part("text", home, quoted=True), first._replace(text=first.text[1:]), *parts[1:])


def parse_pattern(pieces: list[tuple[str, bool]]) -> list[str] | None:
    """The glob pattern of texts, each with whether it is quoted and thus literal: `*`, or a regex for one character.

    None for a class that is not closed or has a name (`[:alpha:]`).
    """
    characters = [(character, quoted) for text, quoted in pieces for character in text]
    patterns: list[str] = []
    at = 0
    while at < len(characters):
        character, quoted = characters[at]
        if (character, quoted) == ("[", False):
            end = _closing(characters, at)
            inner = "".join(inside for inside, _ in characters[at + 1 : end])
            if end is None or "[:" in inner:
                return None
            # Without the `(?s:` and `)\Z` around it. fnmatch negates only with `!`, bash also with `^`.
            patterns.append(fnmatch.translate(f"[{re.sub('^[!^]', '!', inner)}]")[4:-3])
            at = end
        elif not quoted and character in "*?":
            patterns.append("*" if character == "*" else ".")
        else:
            patterns.append(re.escape(character))
        at += 1
    return patterns


def _closing(characters: list[tuple[str, bool]], start: int) -> int | None:
    """The index of the end of a class: a leading `]` is a member of the class."""
    first = start + 1 + (characters[start + 1 : start + 2] in ([("!", False)], [("^", False)]))
    return next((at for at in range(first + 1, len(characters)) if characters[at] == ("]", False)), None)


def _segments(patterns: list[str]) -> list[str]:
    """The expressions between the stars of a pattern."""
    segments = [""]
    for pattern in patterns:
        if pattern == "*":
            segments.append("")
        else:
            segments[-1] += pattern
    return segments


def trim(value: str, operator: str, patterns: list[str]) -> str | None:
    """`value` without the shortest (`#`, `%`) or longest (`##`, `%%`) match at its start or end; None above a limit."""
    if len(value) > _LONGEST_COMPUTED or len(value) * len(patterns) > _LONGEST_COMPUTED * 64:
        return None
    step = 1 if operator[0] == "#" else -1
    segments = _segments(patterns[::step])
    # Atomic groups limit the time: every segment but the last is best matched as early as possible.
    regex = segments[0] + "".join(f"(?>.*?{segment})" for segment in segments[1:-1])
    if len(segments) > 1:
        regex += f"(?>.*{'?' if len(operator) == 1 else ''}{segments[-1]})"
    match = re.match(regex, value[::step], re.DOTALL)
    return value if match is None else value[::step][match.end() :][::step]


def split_replacement(argument: str) -> tuple[str, str]:
    """The pattern and the new text of `${X/OLD/NEW}`; a slash in OLD is escaped or quoted."""
    match = re.match(r"((?:[^\\/'\"]|\\.|'[^']*'|\"[^\"]*\")*)/", argument, re.DOTALL)
    return (match[1], argument[match.end() :]) if match else (argument, "")


def replace_pattern(value: str, operator: str, patterns: list[str], new: str) -> str | None:
    """`value` with the longest first match (`/`), all matches (`//`), or one at the start or end replaced.

    None above a limit, and for more than one `*`.
    """
    if len(value) > (_LONGEST_REPLACED if "*" in patterns else _LONGEST_COMPUTED) or patterns.count("*") > 1:
        return None
    regex = "".join(".*" if pattern == "*" else pattern for pattern in patterns)
    if operator in ("/#", "/%"):
        regex = rf"\A(?:{regex})" if operator == "/#" else rf"(?:{regex})\Z"
    return re.sub(regex, lambda _: new, value, count=0 if operator == "//" else 1, flags=re.DOTALL)


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


_ARITHMETIC = re.compile(
    r"\s*(?:(?P<number>\d+#[0-9A-Za-z]+|0[xX][0-9a-fA-F]+|\d+)|(?P<name>[A-Za-z_]\w*)|"
    r"(?P<operator><<=|>>=|\*\*|\+\+|--|&&|\|\||<<|>>|[-+*/%<>=!&|^]=|[-+*/%<>=!&|^~?:(),]))"
)
# From loose to tight, as in C. `**` is tighter than all of them and groups to the right.
_PRECEDENCE = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip
_ASSIGNING = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|="))
_MAX_NESTING = 30


class ArithmeticSyntaxError(Exception):
    """The expression is not one that bash would compute, or it is not supported."""


class Arithmetic:
    """Computes an expression in 64 bits. `value` gives the text of a variable, `assign` changes it."""

    def __init__(self, text: str, value: Callable[[str], str], assign: Callable[[str, str], None]) -> None:
        self._tokens = _arithmetic_tokens(text)
        self._at = self._nesting = self._skipped = 0
        self._value, self._assign = value, assign

    def result(self) -> int:
        """The value. Raises ArithmeticSyntaxError."""
        if not self._tokens:
            return 0
        value = self._comma()
        if self._at < len(self._tokens):
            raise ArithmeticSyntaxError
        return value

    def _next(self, *operators: str) -> str | None:
        """The next token if it is one of these operators."""
        if self._at < len(self._tokens) and self._tokens[self._at] in operators:
            self._at += 1
            return self._tokens[self._at - 1]
        return None

    def _comma(self) -> int:
        value = self._assignment()
        while self._next(","):
            value = self._assignment()
        return value

    def _assignment(self) -> int:
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            raise ArithmeticSyntaxError
        try:
            name, operator = ([*self._tokens[self._at : self._at + 2], "", ""])[:2]
            if not _is_name(name) or operator not in _ASSIGNING:
                return self._conditional()
            self._at += 2
            value = self._assignment()
            value = value if operator == "=" else self._apply(operator[:-1], self._variable(name), value)
            return self._set(name, value)
        finally:
            self._nesting -= 1

    def _set(self, name: str, value: int) -> int:
        if not self._skipped:
            self._assign(name, str(value))
        return value

    def _conditional(self) -> int:
        condition = self._binary(0)
        if not self._next("?"):
            return condition
        first = self._branch(self._assignment, taken=condition != 0)
        if not self._next(":"):
            raise ArithmeticSyntaxError
        second = self._branch(self._conditional, taken=condition == 0)
        return first if condition else second

    def _branch(self, parse: Callable[[], int], *, taken: bool) -> int:
        """Parse an operand; one that is not taken assigns nothing and divides by nothing."""
        self._skipped += not taken
        try:
            return parse()
        finally:
            self._skipped -= not taken

    def _binary(self, level: int) -> int:
        if level == len(_PRECEDENCE):
            return self._power()
        left = self._binary(level + 1)
        while operator := self._next(*_PRECEDENCE[level]):
            if operator in ("&&", "||"):
                right = self._branch(lambda: self._binary(level + 1), taken=(left != 0) == (operator == "&&"))
                left = int(bool(left and right) if operator == "&&" else bool(left or right))
            else:
                left = self._apply(operator, left, self._binary(level + 1))
        return left

    def _power(self) -> int:
        base = self._unary()
        if not self._next("**"):
            return base
        exponent = self._power()
        if exponent < 0 and not self._skipped:
            raise ArithmeticSyntaxError
        return _wrap(pow(base, max(exponent, 0), 1 << 64))

    def _unary(self) -> int:
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            raise ArithmeticSyntaxError
        try:
            if operator := self._next("++", "--"):
                return self._step(operator)
            match self._next("-", "+", "!", "~"):
                case "-":
                    return _wrap(-self._unary())
                case "+":
                    return self._unary()
                case "!":
                    return int(not self._unary())
                case "~":
                    return ~self._unary()
            return self._operand()
        finally:
            self._nesting -= 1

    def _step(self, operator: str) -> int:
        name = self._tokens[self._at] if self._at < len(self._tokens) else ""
        if not _is_name(name):
            raise ArithmeticSyntaxError
        self._at += 1
        return self._set(name, _wrap(self._variable(name) + (1 if operator == "++" else -1)))

    def _operand(self) -> int:
        if self._next("("):
            value = self._comma()
            if not self._next(")"):
                raise ArithmeticSyntaxError
            return value
        token = self._tokens[self._at] if self._at < len(self._tokens) else ""
        self._at += 1
        if not _is_name(token):
            return _number(token)
        value = self._variable(token)
        if operator := self._next("++", "--"):
            self._set(token, _wrap(value + (1 if operator == "++" else -1)))
        return value

    def _variable(self, name: str, depth: int = 0) -> int:
        """The value of a variable is itself an expression; only numbers and names are supported."""
        text = self._value(name).strip()
        if re.fullmatch(r"[A-Za-z_]\w*", text) and depth < _MAX_NESTING:
            return self._variable(text, depth + 1)
        return _number(text.lstrip("+-")) * (-1 if text.startswith("-") else 1) if text else 0

    def _apply(self, operator: str, left: int, right: int) -> int:
        if operator in ("/", "%"):
            if right == 0:
                if self._skipped:
                    return 0
                raise ArithmeticSyntaxError
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return _wrap(quotient if operator == "/" else left - quotient * right)
        return _wrap(int(_OPERATIONS[operator](left, right)))


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "<<": lambda left, right: left << (right % 64),
    ">>": lambda left, right: left >> (right % 64),
    "&": and_,
    "|": or_,
    "^": xor,
    "==": eq,
    "!=": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}


def _arithmetic_tokens(text: str) -> list[str]:
    tokens, at = list[str](), 0
    text = text.strip()
    while at < len(text):
        match = _ARITHMETIC.match(text, at)
        if match is None:
            raise ArithmeticSyntaxError
        tokens.append(match[0].strip())
        at = match.end()
    return tokens


def _is_name(token: str) -> bool:
    return token[:1].isalpha() or token[:1] == "_"


def _number(text: str) -> int:
    """Decimal, 0x…, 0… (octal), or BASE#…"""
    base, mark, digits = text.partition("#")
    try:
        if mark:
            return _wrap(int(digits, int(base)))
        return _wrap(int(text, 16 if text[:2] in ("0x", "0X") else 8 if text[:1] == "0" else 10))
    except ValueError as error:
        raise ArithmeticSyntaxError from error


def _wrap(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


_FILE_TESTS = frozenset(("-e", "-f", "-r", "-s"))
_INTEGER = re.compile(r"\s*[-+]?\d{1,18}\s*")
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "-eq": eq,
    "-ne": ne,
    "-lt": lt,
    "-le": le,
    "-gt": gt,
    "-ge": ge,
}
_BINARY = (*_COMPARISONS, "=", "==", "!=", "=~", "<", ">")


class Operand(NamedTuple):
    """A word of a condition. `text`: its value, None if that is not known. `operator`: the word as an operator.

    `pattern`: its texts, each with whether it is literal; None if it is not a pattern.
    """

    text: str | None
    operator: str | None = None
    pattern: list[tuple[str, bool]] | None = None


class Conditions:
    """Decides `test` and `[[`: true, false, or None where the text does not decide."""

    def __init__(self, is_set: Callable[[str], bool], is_file: Callable[[str], bool]) -> None:
        """`is_set`: whether the text sets a variable. `is_file`: whether a path is a file beside the text."""
        self._is_set, self._is_file = is_set, is_file
        self._operands: list[Operand] = []
        self._at = 0

    def by_arguments(self, arguments: Sequence[Operand]) -> bool | None:
        """`test` and `[`, whose number of arguments decides what is an operator."""
        if not arguments:
            return False
        if len(arguments) == 1:
            return None if arguments[0].text is None else bool(arguments[0].text)
        if len(arguments) == 3 and arguments[1].operator in _BINARY:
            return self._compare(arguments[1].operator, arguments[0], arguments[2])
        if len(arguments) == 2 and arguments[0].operator != "!":
            return self._unary(arguments[0].operator, arguments[1])
        return self._all(arguments, "-o", "-a")

    def by_words(self, words: Sequence[Operand]) -> bool | None:
        """`[[ … ]]`."""
        return self._all(words, "||", "&&")

    def _all(self, operands: Sequence[Operand], either: str, both: str) -> bool | None:
        self._operands, self._at = list(operands), 0
        value = self._or(either, both)
        return value if self._at == len(self._operands) else None

    def _next(self, *operators: str) -> str | None:
        if self._at < len(self._operands) and self._operands[self._at].operator in operators:
            self._at += 1
            return self._operands[self._at - 1].operator
        return None

    def _or(self, either: str, both: str) -> bool | None:
        values = [self._and(either, both)]
        while self._next(either):
            values.append(self._and(either, both))
        return True if True in values else None if None in values else False

    def _and(self, either: str, both: str) -> bool | None:
        values = [self._not(either, both)]
        while self._next(both):
            values.append(self._not(either, both))
        return False if False in values else None if None in values else True

    def _not(self, either: str, both: str) -> bool | None:
        if self._next("!"):
            value = self._not(either, both)
            return None if value is None else not value
        if self._next("("):
            value = self._or(either, both)
            return value if self._next(")") else None
        return self._primary()

    def _primary(self) -> bool | None:
        left = self._take()
        if operator := self._next(*_BINARY):
            return self._compare(operator, left, self._take())
        if left.operator is not None and re.fullmatch(r"-[a-zA-Z]", left.operator) and self._at < len(self._operands):
            return self._unary(left.operator, self._take())
        return None if left.text is None else bool(left.text)

    def _take(self) -> Operand:
        self._at += 1
        return self._operands[self._at - 1] if self._at <= len(self._operands) else Operand(None)

    def _unary(self, operator: str | None, operand: Operand) -> bool | None:
        if operand.text is None:
            return None
        if operator == "-v":
            return self._is_set(operand.text)
        if operator in ("-n", "-z"):
            return bool(operand.text) == (operator == "-n")
        return True if operator in _FILE_TESTS and self._is_file(operand.text) else None

    def _compare(self, operator: str | None, left: Operand, right: Operand) -> bool | None:
        if left.text is None or right.text is None or operator in ("=~", "<", ">", None):
            return None
        if compare := _COMPARISONS.get(operator):
            if _INTEGER.fullmatch(left.text) and _INTEGER.fullmatch(right.text):
                return compare(int(left.text), int(right.text))
            return None
        equal = left.text == right.text if right.pattern is None else matches_pattern(left.text, right.pattern)
        return None if equal is None else equal == (operator != "!=")


def matches_pattern(text: str, pattern: list[tuple[str, bool]]) -> bool | None:
    """Whether a text matches the pattern of `case` or `[[`; None if that is not known."""
    patterns = parse_pattern(pattern)
    if patterns is None or len(text) > _LONGEST_COMPUTED or len(text) * len(patterns) > _LONGEST_COMPUTED * 64:
        return None
    first, *segments = _segments(patterns)
    # Atomic groups limit the time: every segment but the last is best matched as early as possible.
    regex = first + "".join(f"(?>.*?{segment})" for segment in segments[:-1])
    return re.fullmatch(regex + (f".*{segments[-1]}" if segments else ""), text, re.DOTALL) is not None
