"""JSON whose quoting was lost, doubled or escaped for something else: found in shell text, and mended as a value."""

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from gb300serve.core.values import WrittenFloat, compact_json

_LONGEST = 20_000
_OPENING = re.compile(r"[{\[]\s*(?:[\"'{\[}\]]|[A-Za-z_][\w.-]*\s*:|\\\")")
_BARE = re.compile(r"(?<=[{,\[:])\s*([A-Za-z_][\w./-]*|\.?/[\w./-]+)\s*(?=[:,}\]])")
_WORDS = {"True": "true", "False": "false", "None": "null"}
_CONSTANTS = ("true", "false", "null")


class FoundJson(NamedTuple):
    """JSON in a text: what it says, and where it ends."""

    text: str
    end: int


def json_at(text: str, start: int) -> FoundJson | None:
    """JSON that begins at `start` outside of all quotes, or in double quotes that its own quotes would close.

    None for what a shell reads as it was meant: a word in single quotes, a list of numbers without blanks.
    """
    quoted = text[start] == '"'
    begin = start + quoted
    if not _OPENING.match(text, begin):
        return None
    end = _balanced(text, begin)
    if end is None or (quoted and text[end : end + 1] != '"'):
        return None
    inner = text[begin:end]
    if quoted and ('"' not in inner or '\\"' in inner or "$" in inner):
        return None
    if not quoted and _harmless(inner):
        return None
    read = loads(inner)
    if read is None:
        return None
    return FoundJson(inner if read[1] is None else compact_json(read[0]), end + quoted)


def _harmless(inner: str) -> bool:
    """Whether a shell passes the bare text on as it is."""
    return inner[0] == "[" and re.search(r"[\s\"'\\{}]", inner) is None


def _balanced(text: str, start: int) -> int | None:
    """The end of what opens at `start`, strings passed over."""
    depth, at, limit = 0, start, min(len(text), start + _LONGEST)
    while at < limit:
        sign = text[at]
        if sign == '"':
            end = re.compile(r'"(?:[^"\\\n]|\\.)*"').match(text, at)
            at = end.end() if end else at + 1
            continue
        depth += (sign in "{[") - (sign in "}]")
        at += 1
        if depth == 0:
            return at
    return None


def plain_json(text: str) -> Any:
    """The mapping or list that the text is, else None."""
    try:
        found = json.loads(text, parse_float=fraction, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, (dict, list)) else None


def fraction(text: str) -> float:
    """A number as a recipe writes it: decimal, without an exponent. ValueError for what is none, or is far too long."""
    if re.fullmatch(r"-?\d{1,40}\.\d{1,40}", text):
        return WrittenFloat(text)
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise ValueError(text) from error
    if not number.is_finite() or abs(number.adjusted()) > 40:
        raise ValueError(text)
    written = format(number, "f")
    return WrittenFloat(written if "." in written else f"{written}.0")


def _no_number(text: str) -> float:
    raise ValueError(text)


def loads(text: str) -> tuple[Any, str | None] | None:
    """What the text says as JSON, and what had to be mended; None where it is no JSON in any spelling."""
    if len(text) > _LONGEST:
        return None
    if (found := plain_json(text)) is not None:
        return found, None
    for what, mend in _MENDS:
        tried = mend(text)
        if tried != text and (found := plain_json(tried)) is not None:
            return found, what
    return None


def _single_braces(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}") if text.startswith("{{") else text


def _outer_braces(text: str) -> str:
    return text[1:-1] if text.startswith("{{") and text.endswith("}}") else text


def _unescaped(text: str) -> str:
    return text.replace('\\"', '"')


def _single_quotes_inside(text: str) -> str:
    return text if '"' in text else _pythonic(text.replace("'", '"'))


def _pythonic(text: str) -> str:
    return re.sub(r"(?<=[:,\[{\s])(True|False|None)(?=[,}\]\s])", lambda match: _WORDS[match[1]], text)


def _undoubled(text: str) -> str:
    return re.sub(r'""(?=[^"]|$)', '"', text)


def _requoted(text: str) -> str:
    return _BARE.sub(lambda m: m[1] if m[1] in _CONSTANTS else json.dumps(_WORDS.get(m[1], m[1])), text)


def _no_last_comma(text: str) -> str:
    return re.sub(r",\s*(?=[}\]])", "", text)


def _outer_quotes(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


_MENDS = (
    ("its braces are doubled, as in a template ({{ and }})", _single_braces),
    ("its braces are doubled, as in a template ({{ and }})", _outer_braces),
    ("its quotes are escaped by backslashes", _unescaped),
    ("its quotes are single ones, as Python prints them", _single_quotes_inside),
    ("its constants are Python's", _pythonic),
    ("its quotes are doubled", _undoubled),
    ("its quotes were lost", _requoted),
    ("a comma stands before a closing bracket", _no_last_comma),
    ("it stands in quotes twice", _outer_quotes),
    ("it stands in quotes twice, escaped", lambda text: _unescaped(_outer_quotes(text))),
    ("braces and quotes are a template's", lambda text: _unescaped(_single_braces(text))),
)
