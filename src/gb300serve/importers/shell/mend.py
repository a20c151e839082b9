"""What copying, word processors and other systems do to a command, undone and named before a shell reads the text."""

import json
import re
from bisect import bisect_right
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import Any, NamedTuple

from gb300serve.core.values import WrittenFloat, compact_json
from gb300serve.importers.report import COPIED, MENDED, Report
from gb300serve.importers.shell.words import SourceText

_LONGEST = 20_000
_OPENING = re.compile(r"[{\[]\s*(?:[\"'{\[}\]]|[A-Za-z_][\w.-]*\s*:|\\\")")
_BARE = re.compile(r"(?<=[{,\[:])\s*([A-Za-z_][\w./-]*|\.?/[\w./-]+)\s*(?=[:,}\]])")
_WORDS = {"True": "true", "False": "false", "None": "null"}
_CONSTANTS = ("true", "false", "null")


class JsonSpan(NamedTuple):
    """JSON in a text: what it says, and where it ends."""

    text: str
    end: int


def find_json(text: str, start: int) -> JsonSpan | None:
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
    read = load_json(inner)
    if read is None:
        return None
    return JsonSpan(inner if read[1] is None else compact_json(read[0]), end + quoted)


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


def parse_json(text: str) -> Any:
    """The mapping or list that the text is, else None."""
    try:
        found = json.loads(text, parse_float=parse_fraction, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, (dict, list)) else None


def parse_fraction(text: str) -> float:
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


def load_json(text: str) -> tuple[Any, str | None] | None:
    """What the text says as JSON, and what had to be mended; None where it is no JSON in any spelling."""
    if len(text) > _LONGEST:
        return None
    if (found := parse_json(text)) is not None:
        return found, None
    for what, mend in _MENDS:
        tried = mend(text)
        if tried != text and (found := parse_json(tried)) is not None:
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


_PROMPT = r"^([ \t]*)((?:\([\w.-]+\) ?)?(?:[\w.-]+@[\w.-]+[^\n$#]{0,60}[$#]|PS [^>\n]{0,80}>|[$%\u276f\u279c]) +)(?=\S)"
_ROOT = r"^([ \t]*)(# +)(?=(?:sudo +)?(?:docker|podman) +(?:container +)?run\b)"
_SECOND = r"^([ \t]*)(>{1,2} ?)(?=[ \t]*\S|$)"
_FENCE = r"^[ \t]*(?:```|~~~)[^\n]*$"
_QUOTES = {
    "\u201c": '"',
    "\u201d": '"',
    "\u201e": '"',
    "\u201f": '"',
    "\u00ab": '"',
    "\u00bb": '"',
    "\u2018": "'",
    "\u2019": "'",
    "\u201a": "'",
    "\u201b": "'",
}
_CURLY = "[" + "".join(_QUOTES) + "]"
_BLANKS = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u200b-\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff\ue000\ue001"
# ECMA-48: what sets colours and moves the cursor, and what sets a title.
_ESCAPE = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"
_SINGLE = re.compile(r"(?<![^\s=\"])'[^'\n]*'(?=[\s'\"\\]|$)", re.MULTILINE)
_MOST = 20  # places of one kind that are named
_TICK = r"(?<=[ \t])`[ \t]*$"
_CARET = r"(?<=[ \t])\^[ \t]*$"


def mend(text: str, report: Report) -> SourceText:
    """The text as it was typed, everything that was changed reported once with its first place."""
    found = SourceText(text)
    for step in (
        _line_ends,
        _colours,
        _invisible,
        _fences,
        _prompts,
        _dashes,
        _quotes,
        _other_continuations,
        _doubled,
        _blanks_at_ends,
    ):
        found = step(found, report)
    return found


class Unquoted:
    """The matches of a pattern that no straight single quotes keep: what stands in those was typed as it stands.

    JSON in single quotes that is none with such a sign in it was damaged all the same.
    """

    def __init__(self, text: SourceText, pattern: str) -> None:
        self._text, self._pattern = text, pattern
        quoted = _SINGLE.finditer(text.text)
        self._kept = [found.span() for found in quoted if re.search(pattern, found[0]) and not _damaged(found[0][1:-1])]
        self.first = next((found for found in re.finditer(pattern, text.text) if not self._keeps(found)), None)

    def sub(self, new: Callable[[re.Match[str]], str]) -> SourceText:
        """The text with each of them replaced."""
        return self._text.sub(self._pattern, lambda found: found[0] if self._keeps(found) else new(found))

    def _keeps(self, found: re.Match[str]) -> bool:
        at = bisect_right(self._kept, (found.start(), len(self._text.text))) - 1
        return at >= 0 and found.start() < self._kept[at][1]


def _damaged(text: str) -> bool:
    """Whether it is JSON only with straight quotes and plain blanks."""
    if text[:1] not in ("{", "["):
        return False
    straight = re.sub(f"[{_BLANKS}]", " ", re.sub(_CURLY, lambda found: _QUOTES[found[0]], text))
    return parse_json(text) is None and parse_json(straight) is not None


def _line_ends(text: SourceText, report: Report) -> SourceText:
    if "\r" not in text.text:
        return text
    message = (
        "the lines end in CRLF (a carriage return, \\r, before the line feed): bash would pass it on as part of words"
    )
    report.say(
        MENDED,
        message,
        "read as plain line ends; `sed -i 's/\\r$//' FILE` mends the file",
        text.place(text.text.index("\r")),
    )
    return text.sub(r"\r\n?", lambda _: "\n")


def _colours(text: SourceText, report: Report) -> SourceText:
    found = re.search(_ESCAPE, text.text)
    if found is None:
        return text
    message = "the text holds a terminal's own sequences (colours, titles), as a recording of one does"
    report.say(MENDED, message, "they were left out", text.place(found.start()))
    return text.sub(_ESCAPE, lambda _: "")


def _invisible(text: SourceText, report: Report) -> SourceText:
    blanks = Unquoted(text, f"[{_BLANKS}]")
    first = re.search(f"[{_INVISIBLE}]", text.text)
    found = min(filter(None, (first, blanks.first)), key=lambda match: match.start(), default=None)
    if found is None:
        return text
    message = f"U+{ord(found[0]):04X} stands here: a blank that is none to the shell, or a sign that is not seen"
    report.say(MENDED, message, "read as a plain blank, or as nothing", text.place(found.start()))
    return blanks.sub(lambda _: " ").sub(f"[{_INVISIBLE}]", lambda _: "")


def _fences(text: SourceText, report: Report) -> SourceText:
    found = re.search(_FENCE, text.text, re.MULTILINE)
    if found is None:
        return text
    report.say(COPIED, "the text is fenced as Markdown", "the fences were left out", text.place(found.start()))
    return text.sub(_FENCE, lambda _: "", re.MULTILINE)


def _prompts(text: SourceText, report: Report) -> SourceText:
    first = re.search(_PROMPT, text.text, re.MULTILINE) or re.search(_ROOT, text.text, re.MULTILINE)
    if first is None:
        return text
    message = f"prompt characters (`{first[2].strip()}`) were copied with the command"
    report.say(MENDED, message, "they were left out", text.place(first.start(2)))
    blanked = text
    for pattern in (_PROMPT, _ROOT, _SECOND):
        blanked = blanked.sub(pattern, _blank, re.MULTILINE)
    return blanked


def _blank(match: re.Match[str]) -> str:
    return match[1] + " " * len(match[2])


def _dashes(text: SourceText, report: Report) -> SourceText:
    pattern = r"(?<![^\s'\"])(-?)([\u2014\u2013\u2012\u2015\u2212])(-?)(?=([A-Za-z][\w-]*))"
    outside = Unquoted(text, pattern)
    found = outside.first
    if found is None:
        return text
    sign = f"U+{ord(found[2]):04X}"
    message = f"a dash ({sign}) stands where hyphens were typed: a word processor made one sign of two"
    report.say(MENDED, message, "read as `--` before a word, as `-` before a single letter", text.place(found.start()))
    return outside.sub(_hyphens)


def _hyphens(match: re.Match[str]) -> str:
    return "-" if match[2] in "\u2013\u2212" and len(match[4]) == 1 and not match[1] else "--"


def _quotes(text: SourceText, report: Report) -> SourceText:
    outside = Unquoted(text, _CURLY)
    found = outside.first
    if found is None:
        return text
    message = (
        f"curly quotes (U+{ord(found[0]):04X}) stand where straight quotes were typed: to a shell they quote nothing"
    )
    report.say(MENDED, message, "read as straight quotes", text.place(found.start()))
    return outside.sub(lambda match: _QUOTES[match[0]])


def _other_continuations(text: SourceText, report: Report) -> SourceText:
    for pattern, sign, whose in ((_TICK, "`", "PowerShell"), (_CARET, "^", "cmd.exe")):
        found = re.search(pattern, text.text, re.MULTILINE)
        # Between two backticks of one line stands a substitution; one that ends a line continues it.
        if found is None:
            continue
        message = f"lines end in `{sign}`, the continuation of {whose}; bash reads it as something else"
        report.say(COPIED, message, "read as a backslash", text.place(found.start()))
        text = text.sub(pattern, lambda _: "\\", re.MULTILINE)
    return text


def _doubled(text: SourceText, report: Report) -> SourceText:
    pattern = r"(?<=[ \t])\\\\(?=[ \t]*\n[ \t]*\S)"
    found = re.search(pattern, text.text)
    if found is None:
        return text
    message = "two backslashes stand at the end of the line: to bash the first makes a plain sign of the second"
    report.say(MENDED, message, "read as one, which continues the line", text.place(found.start()))
    return text.sub(pattern, lambda _: "\\")


def _blanks_at_ends(text: SourceText, report: Report) -> SourceText:
    pattern = r"(?<=[ \t])\\(?:[ \t]+(?:#[^\n]*)?)$"
    for found in islice(re.finditer(pattern, text.text, re.MULTILINE), _MOST):
        message = (
            "a trailing blank stands after the backslash: the space is passed on as a word and the command ends here"
        )
        if "#" in found[0]:
            message = "a comment stands after the backslash: the line is not continued, and the command ends here"
        report.say(
            MENDED, message, "read as a continuation; nothing may follow the backslash", text.place(found.start())
        )
    return text.sub(pattern, lambda _: "\\", re.MULTILINE)
