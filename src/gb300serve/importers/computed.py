"""What bash computes of a variable's value: `${X#…}`, `${X%…}`, `${X/…/…}`, `${X,,}`, `${X:1:2}`, `${#X}`."""

import re
from typing import NamedTuple

_LONGEST = 4096
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


def pattern(pieces: list[tuple[str, bool]]) -> list[Glob] | None:
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


def trimmed(value: str, operator: str, glob: list[Glob]) -> str | None:
    """`value` without the shortest (`#`, `%`) or longest (`##`, `%%`) match at its beginning or end; None where it is
    too long to be looked at."""
    if len(value) > _LONGEST or len(value) * len(glob) > _LONGEST * 64:
        return None
    front = operator[0] == "#"
    lengths = _lengths(value if front else value[::-1], glob if front else glob[::-1])
    if not lengths:
        return value
    length = lengths[0] if len(operator) == 1 else lengths[-1]
    return value[length:] if front else value[: len(value) - length]


def replaced(value: str, old: str, new: str, *, every: bool) -> str:
    """`${X/old/new}` and `${X//old/new}` for an `old` without a pattern."""
    return value.replace(old, new, -1 if every else 1) if old else value


def cased(value: str, operator: str) -> str:
    """`^^`, `^`, `,,`, `,`."""
    change = str.upper if operator[0] == "^" else str.lower
    return change(value) if len(operator) == 2 else change(value[:1]) + value[1:]


def sliced(value: str, behind: str) -> str | None:
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
