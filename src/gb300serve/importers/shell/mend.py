"""Repair text that was damaged by copying, word processors or other systems, and report each repair."""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import Any, NamedTuple

from gb300serve.core.values import WrittenFloat, compact_json
from gb300serve.engines.registry import ENGINES
from gb300serve.importers.report import COPIED, MENDED, Report
from gb300serve.importers.shell.words import SourceText

_LONGEST = 20_000
_OPENING = re.compile(r"[{\[]\s*(?:[\"'{\[}\]]|[A-Za-z_][\w.-]*\s*:|\\\")")
_BARE = re.compile(r"(?<=[{,\[:])\s*([A-Za-z_][\w./-]*|\.?/[\w./-]+)\s*(?=[:,}\]])")
_WORDS = {"True": "true", "False": "false", "None": "null"}
_CONSTANTS = ("true", "false", "null")


class JsonSpan(NamedTuple):
    """JSON in a text: its repaired text, and where it ends."""

    text: str
    end: int


def find_json(text: str, start: int) -> JsonSpan | None:
    """JSON that begins at `start` without quotes, or in double quotes that its own quotes would close.

    None for JSON that a shell passes on unchanged.
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
    is_list_of_numbers = inner[0] == "[" and re.search(r"[\s\"'\\{}]", inner) is None
    loaded = None if is_list_of_numbers and not quoted else load_json(inner)
    if loaded is None:
        return None
    value, repair = loaded
    return JsonSpan(inner if repair is None else compact_json(value), end + quoted)


def _balanced(text: str, start: int) -> int | None:
    """The end of the bracket that opens at `start`; brackets in strings do not count."""
    depth, at, limit = 0, start, min(len(text), start + _LONGEST)
    while at < limit:
        character = text[at]
        if character == '"':
            end = re.compile(r'"(?:[^"\\\n]|\\.)*"').match(text, at)
            at = end.end() if end else at + 1
            continue
        depth += (character in "{[") - (character in "}]")
        at += 1
        if depth == 0:
            return at
    return None


def parse_json(text: str) -> Any:
    """The object or list in the text, or None."""
    try:
        found = json.loads(text, parse_float=parse_fraction, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, (dict, list)) else None


def parse_fraction(text: str) -> float:
    """A decimal number without an exponent, as a recipe writes it. ValueError if it is not one, or too long."""
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


def _reject_constant(text: str) -> float:
    raise ValueError(text)


def load_json(text: str) -> tuple[Any, str | None] | None:
    """The value of the JSON and what was repaired; None if the text is not JSON in any spelling."""
    if len(text) > _LONGEST:
        return None
    if (found := parse_json(text)) is not None:
        return found, None
    for damage, repair in _JSON_REPAIRS:
        repaired = repair(text)
        if repaired != text and (found := parse_json(repaired)) is not None:
            return found, damage
    return None


def _single_braces(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}") if text.startswith("{{") else text


def _unescape(text: str) -> str:
    return text.replace('\\"', '"')


def _double_quotes(text: str) -> str:
    return text if '"' in text else _json_constants(text.replace("'", '"'))


def _json_constants(text: str) -> str:
    return re.sub(r"(?<=[:,\[{\s])(True|False|None)(?=[,}\]\s])", lambda match: _WORDS[match[1]], text)


def _quote_words(text: str) -> str:
    return _BARE.sub(lambda m: m[1] if m[1] in _CONSTANTS else json.dumps(_WORDS.get(m[1], m[1])), text)


def _drop_outer_quotes(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


_DOUBLED_BRACES = "its braces are doubled, as in a template ({{ and }})"
_JSON_REPAIRS: tuple[tuple[str, Callable[[str], str]], ...] = (
    (_DOUBLED_BRACES, _single_braces),
    (_DOUBLED_BRACES, lambda text: text[1:-1] if text.startswith("{{") and text.endswith("}}") else text),
    ("its quotes are escaped with backslashes", _unescape),
    ("it has single quotes, as in Python", _double_quotes),
    ("it has Python's constants (True, False, None)", _json_constants),
    ("its quotes are doubled", lambda text: re.sub(r'""(?=[^"]|$)', '"', text)),
    ("its quotes are missing", _quote_words),
    ("it has a comma before a closing bracket", lambda text: re.sub(r",\s*(?=[}\]])", "", text)),
    ("it is quoted twice", _drop_outer_quotes),
    ("it is quoted twice and escaped", lambda text: _unescape(_drop_outer_quotes(text))),
    ("its braces are doubled and its quotes escaped, as in a template", lambda text: _unescape(_single_braces(text))),
)


_PROMPT = r"^([ \t]*)((?:\([\w.-]+\) ?)?(?:[\w.-]+@[\w.-]+[^\n$#]{0,60}[$#]|PS [^>\n]{0,80}>|[$%\u276f\u279c]) +)(?=\S)"
_ROOT_PROMPT = r"^([ \t]*)(# +)(?=(?:sudo +)?(?:docker|podman) +(?:container +)?run\b)"
_SECOND_PROMPT = r"^([ \t]*)(>{1,2} ?)(?=[ \t]*\S|$)"
_FENCE = r"^[ \t]*(?:```|~~~)[^\n]*$"
_CURLY = "\u201c\u201d\u201e\u201f\u00ab\u00bb\u2018\u2019\u201a\u201b"
_STRAIGHT = dict(zip(_CURLY, '"' * 6 + "'" * 4, strict=True))
_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_INVISIBLE = "\u200b-\u200f\u2028\u2029\u202a-\u202e\u2060\u2066-\u2069\ufeff\ue000-\ue002"
# ECMA-48: sequences for colours and the cursor, and for the window title.
_ESCAPE = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"
_SINGLE_QUOTED = re.compile(r"(?<![^\s=\"])'[^'\n]*'(?=[\s'\"\\]|$)", re.MULTILINE)
_DASH = r"(?<![^\s'\"])(-?)([\u2014\u2013\u2012\u2015\u2212])(-?)(?=([A-Za-z][\w-]*))"
_DOUBLED_BACKSLASH = r"(?<=[ \t])\\\\(?=[ \t]*\n[ \t]*\S)"
_AFTER_BACKSLASH = r"(?<=[ \t])\\(?:[ \t]+(?:#[^\n]*)?)$"
_AS_BACKSLASH = "read as a backslash"
_MAX_REPORTED = 20  # repairs of one kind


def mend(text: str, report: Report) -> SourceText:
    """The text as it was typed; each kind of repair is reported with its first position."""
    source = SourceText(text)
    for step in _STEPS:
        source = step(source, report)
    return source


class Unquoted:
    """The matches of a pattern outside single quotes, where text is literal.

    A match in single-quoted JSON counts if the JSON is valid only after the replacement.
    """

    def __init__(self, source: SourceText, pattern: str) -> None:
        self._source, self._pattern = source, pattern
        quoted = (match for match in _SINGLE_QUOTED.finditer(source.text) if re.search(pattern, match[0]))
        self._literal = [match.span() for match in quoted if not _is_damaged_json(match[0][1:-1])]
        self.first = next((m for m in re.finditer(pattern, source.text) if not self._is_literal(m)), None)

    def sub(self, new: Callable[[re.Match[str]], str]) -> SourceText:
        """The text with these matches replaced."""
        return self._source.sub(self._pattern, lambda match: match[0] if self._is_literal(match) else new(match))

    def _is_literal(self, match: re.Match[str]) -> bool:
        at = bisect_right(self._literal, (match.start(), len(self._source.text))) - 1
        return at >= 0 and match.start() < self._literal[at][1]


def _is_damaged_json(text: str) -> bool:
    """Whether the text is JSON only with straight quotes and plain spaces."""
    if text[:1] not in ("{", "["):
        return False
    straight = re.sub(f"[{_SPACES}]", " ", re.sub(f"[{_CURLY}]", lambda match: _STRAIGHT[match[0]], text))
    return parse_json(text) is None and parse_json(straight) is not None


@dataclass(frozen=True, slots=True)
class _Replacement:
    pattern: str
    new: str
    message: str
    hint: str
    code: str = MENDED

    def __call__(self, source: SourceText, report: Report) -> SourceText:
        if (match := re.search(self.pattern, source.text, re.MULTILINE)) is None:
            return source
        report.add(self.code, self.message, self.hint, source.place(match.start()))
        return source.sub(self.pattern, lambda _: self.new, re.MULTILINE)


def _invisible(source: SourceText, report: Report) -> SourceText:
    spaces = Unquoted(source, f"[{_SPACES}]")
    invisible = re.search(f"[{_INVISIBLE}]", source.text)
    first = min(filter(None, (invisible, spaces.first)), key=lambda match: match.start(), default=None)
    if first is None:
        return source
    message = f"U+{ord(first[0]):04X} is a non-breaking space or an invisible character, which bash takes as text"
    report.add(MENDED, message, "read as a plain space or as nothing", source.place(first.start()))
    return spaces.sub(lambda _: " ").sub(f"[{_INVISIBLE}]", lambda _: "")


def _prompts(source: SourceText, report: Report) -> SourceText:
    first = re.search(_PROMPT, source.text, re.MULTILINE) or re.search(_ROOT_PROMPT, source.text, re.MULTILINE)
    if first is None:
        return source
    message = f"prompt characters (`{first[2].strip()}`) were copied with the command"
    report.add(MENDED, message, "they were left out", source.place(first.start(2)))
    for pattern in (_PROMPT, _ROOT_PROMPT, _SECOND_PROMPT):
        source = source.sub(pattern, lambda match: match[1] + " " * len(match[2]), re.MULTILINE)
    return source


def _dashes(source: SourceText, report: Report) -> SourceText:
    dashes = Unquoted(source, _DASH)
    if (first := dashes.first) is None:
        return source
    message = f"a word processor replaced hyphens by a dash (U+{ord(first[2]):04X})"
    hint = "read as `--` before a word, as `-` before a single letter"
    report.add(MENDED, message, hint, source.place(first.start()))
    return dashes.sub(lambda m: "-" if m[2] in "\u2013\u2212" and len(m[4]) == 1 and not m[1] else "--")


def _curly_quotes(source: SourceText, report: Report) -> SourceText:
    quotes = Unquoted(source, f"[{_CURLY}]")
    if (first := quotes.first) is None:
        return source
    message = f"a word processor replaced straight quotes by curly quotes (U+{ord(first[0]):04X})"
    report.add(MENDED, message, "read as straight quotes", source.place(first.start()))
    return quotes.sub(lambda match: _STRAIGHT[match[0]])


def _after_backslashes(source: SourceText, report: Report) -> SourceText:
    for match in islice(re.finditer(_AFTER_BACKSLASH, source.text, re.MULTILINE), _MAX_REPORTED):
        what = "a comment follows" if "#" in match[0] else "trailing spaces follow"
        message = f"{what} the backslash, so bash ends the command here"
        hint = "read as a continuation; nothing may follow the backslash"
        report.add(MENDED, message, hint, source.place(match.start()))
    return source.sub(_AFTER_BACKSLASH, lambda _: "\\", re.MULTILINE)


# A sentence: words that no command has, up to a colon or a full stop.
_PROSE = r"^[ \t]*[A-Z][a-z]+(?:[ \t]+[\w'\u2019,()/+-]+){2,40}[:.][ \t]*$"


def without_prose(source: SourceText, report: Report) -> SourceText:
    """The text without the sentences around its commands, whose parentheses and apostrophes bash cannot read."""
    message = "the text contains sentences besides its commands"
    return _Replacement(_PROSE, "", message, "they were left out", COPIED)(source, report)


# The languages of blocks with shell text; a block may have none.
_SHELL_LANGUAGES = frozenset((
    "", "bash", "sh", "shell", "zsh", "console", "terminal", "shell-session", "shellsession", "text", "txt",
    "plaintext", "powershell", "ps1", "pwsh", "cmd", "bat", "batch", "dos",
))  # fmt: skip
_FENCE_LINE = re.compile(r"[ \t]*(?P<mark>```+|~~~+)[ \t]*(?P<language>[^\s`{]*)[^`]*")
_STARTS = re.compile(
    r"\b(?:docker|podman|nerdctl)\b[^\n]{0,200}?\b(?:run|create)\b|"
    rf"\b(?:{'|'.join(ENGINES)})[ \t]+serve\b|-m[ \t]+(?:{'|'.join(ENGINES)})\."
)


class _Block(NamedTuple):
    """A fenced block of a page: its language, and the numbers of its first line and of the line after its last."""

    language: str
    first: int
    last: int


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    """The closed blocks of a page in Markdown."""
    mark, language, first = "", "", 0
    for number, line in enumerate(lines):
        match = _FENCE_LINE.fullmatch(line)
        if match is None:
            continue
        if not mark:
            mark, language, first = match["mark"], match["language"].lower(), number + 1
        elif match["mark"].startswith(mark) and not match["language"]:
            yield _Block(language, first, number)
            mark = ""


def _markdown(source: SourceText, report: Report) -> SourceText:
    """A page: only its blocks of shell text count, if a launch is in them and none is in the prose."""
    lines = source.text.split("\n")
    blocks = list(_blocks(lines))
    starting = [block for block in blocks if _STARTS.search("\n".join(lines[block.first : block.last]))]
    if not starting or source.text.lstrip().startswith("#!"):
        return source
    fenced = {number for block in blocks for number in range(block.first, block.last)}
    prose = "\n".join(line for number, line in enumerate(lines) if number not in fenced)
    prose = re.sub(r"`[^`\n]*`", "", prose)
    if _STARTS.search(prose) or re.search(r"<<-?[ \t]*[\\'\"]?\w", prose):  # a script with a page in it
        return source
    kept = {
        number
        for block in blocks
        if block in starting or block.language in _SHELL_LANGUAGES
        for number in range(block.first, block.last)
    }
    report.add(COPIED, "the text is a page in Markdown", "only its blocks of shell text were read", source.place(0))
    numbers = iter(range(len(lines)))
    return source.sub(r"^[^\n]*$", lambda match: match[0] if next(numbers) in kept else "", re.MULTILINE)


# `$name = "value"` and `$env:NAME = "value"`: bash would run the value of the variable as a program.
_POWERSHELL_SET = re.compile(
    r"^(?P<indent>[ \t]*)\$(?P<exported>env:)?(?P<name>[A-Za-z_]\w*)[ \t]*=[ \t]*"
    r"(?:(?P<value>\"[^\"`\n]*\"|'[^'\n]*'|-?\d[\w.]*)[ \t]*;?[ \t]*$|(?P<computed>[^=\s][^\n]*)$)",
    re.MULTILINE,
)
_CMD = re.compile(r"(?<=[ \t])\^[ \t]*$|^[ \t]*@echo off\b", re.MULTILINE | re.IGNORECASE)
_CMD_SET = re.compile(
    r"^(?P<indent>[ \t]*)@?set[ \t]+(?P<computed>/[ap][ \t]+)?(?P<open>\"?)(?P<name>[A-Za-z_]\w*)=(?P<value>[^\n]*)$",
    re.MULTILINE | re.IGNORECASE,
)
# Directories of Windows stay: their paths are reported as such.
_CMD_VARIABLE = re.compile(
    r"%(?!(?:cd|userprofile|homedrive|homepath|appdata|localappdata|temp)%)([A-Za-z_]\w*)%", re.IGNORECASE
)
_WINDOWS = "the text sets variables as {} does"
_AS_ASSIGNMENTS = "read as assignments"


def _powershell(source: SourceText, report: Report) -> SourceText:
    """The variables of PowerShell as those of bash; a computed value is an output that is not known."""
    first = _POWERSHELL_SET.search(source.text)
    if first is not None:
        report.add(COPIED, _WINDOWS.format("PowerShell"), _AS_ASSIGNMENTS, source.place(first.start()))

        def assign(match: re.Match[str]) -> str:
            value = match["value"] or '"$(PowerShell)"'
            return f"{match['indent']}{'export ' if match['exported'] else ''}{match['name']}={value}"

        source = source.sub(_POWERSHELL_SET.pattern, assign, re.MULTILINE)
    return source.sub(r"\$env:([A-Za-z_]\w*)|\$\{env:([A-Za-z_]\w*)\}", lambda match: f"${{{match[1] or match[2]}}}")


def _cmd(source: SourceText, report: Report) -> SourceText:
    """The variables of cmd.exe as those of bash."""
    names = {match["name"].upper() for match in _CMD_SET.finditer(source.text)}
    used = {match[1].upper() for match in _CMD_VARIABLE.finditer(source.text)}
    if source.text.lstrip().startswith("#!") or not used or not (_CMD.search(source.text) or names & used):
        return source

    def variable(match: re.Match[str]) -> str:
        return f"${{{match[1].upper()}}}"

    def assign(match: re.Match[str]) -> str:
        value = match["value"].rstrip()
        value = value.removesuffix('"') if match["open"] else value
        value = "$(cmd.exe)" if match["computed"] else re.sub(r'(["$`\\])', r"\\\1", value)
        return f'{match["indent"]}{match["name"].upper()}="{value}"'

    flags = re.MULTILINE | re.IGNORECASE
    report.add(COPIED, _WINDOWS.format("cmd.exe"), _AS_ASSIGNMENTS, source.place(0))
    return source.sub(_CMD_SET.pattern, assign, flags).sub(_CMD_VARIABLE.pattern, variable, flags)


_STEPS: tuple[Callable[[SourceText, Report], SourceText], ...] = (
    _Replacement(
        r"\r\n?",
        "\n",
        r"the lines end in CRLF (\r\n): bash would read the carriage return as text",
        r"read as plain line ends; `sed -i 's/\r$//' FILE` repairs the file",
    ),
    _Replacement(_ESCAPE, "", "the text contains terminal escape sequences (colours, titles)", "they were left out"),
    _invisible,
    _markdown,
    _Replacement(_FENCE, "", "the text contains Markdown fences", "they were left out", COPIED),
    _prompts,
    _dashes,
    _curly_quotes,
    _powershell,
    _cmd,
    # A pair of backticks in one line is a substitution; a single one at the end of a line continues it.
    _Replacement(r"(?<=[ \t])`[ \t]*$", "\\", "lines end in the continuation of PowerShell (`)", _AS_BACKSLASH, COPIED),
    _Replacement(r"(?<=[ \t])\^[ \t]*$", "\\", "lines end in the continuation of cmd.exe (^)", _AS_BACKSLASH, COPIED),
    _Replacement(
        _DOUBLED_BACKSLASH,
        "\\",
        "the line ends in two backslashes, which bash reads as a literal backslash",
        "read as one, which continues the line",
    ),
    _after_backslashes,
)
