"""Text to nodes: YAML 1.1 as libyaml parses it, narrowed to what cannot be misread.

Values are text, `true`/`false`, `null`, JSON's integers and decimal fractions, mappings and lists. Whatever two YAML
readers could understand differently is an error with its position, and all errors of a text are reported at once.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.core.text import printable
from gb300serve.core.values import WrittenFloat
from gb300serve.document.nodes import ListNode, MapNode, Source, Spot, YamlMark

Explained = tuple[str, str | None, YamlMark | None]
"""A message behind `this is not YAML:`, what to do, and where to look."""


def explain_syntax_error(
    text: str, problem: str, context: str, mark: YamlMark | None, opened: YamlMark | None
) -> Explained:
    """The mistakes of a hand, by their usual causes; libyaml's own words for everything else.

    `problem` and `context` are these, `mark` is where (from 0), `opened` where the construct began that is not whole.
    """
    before, sign = "", ""
    if mark is not None:
        line = "".join(text.split("\n")[mark.line : mark.line + 1])
        before, sign = line[: mark.column], line[mark.column : mark.column + 1]
    message, hint = _meant(problem, before, sign) or _unclosed(problem, context, opened)
    at = opened if "could not find expected ':'" in problem else None
    return message, hint, at or mark or opened


def _meant(problem: str, before: str, sign: str) -> tuple[str, str | None] | None:
    if sign == "\t" or "tab character" in problem:
        return "a tab stands where the line is indented", "indent with blanks"
    if "cannot start any token" in problem:
        return f"no plain text begins with `{sign}`", "write the value between quotes"
    if "mapping values are not allowed" in problem:
        if ": " in before:
            return (
                "a second `: ` stands on this line",
                "write the value between quotes, or a key a line",
            )
        return (
            "this line is a key, and the line above it has a value already",
            "indent it as the keys above; a key is followed by `:` and a blank",
        )
    if "expected key" in problem or "expected '-' indicator" in problem:
        return _stray(before, sign, in_list="'-'" in problem)
    return None


def _stray(before: str, sign: str, *, in_list: bool) -> tuple[str, str | None]:
    if before.strip(" -"):
        return (
            "the value ends before this",
            "check quotes and brackets before it, or write all of it between quotes",
        )
    if in_list:
        return "this line stands among the entries of a list and has no `-`", "indent it as the key that it belongs to"
    if sign == "-":
        return "this entry is in no list above it", "indent it as the other entries of its list"
    return "this line is indented as none above it", "indent it as the keys that it belongs to"


def _unclosed(problem: str, context: str, opened: YamlMark | None) -> tuple[str, str | None]:
    where = f"on line {opened.line + 1}" if opened is not None else "here"
    if "expected ',' or '" in problem:
        return f"the `{'{' if '}' in problem else '['}` that opens {where} is not closed", f"write `{problem[-2]}`"
    if "unexpected end of stream" in problem and "quoted" in context:
        return f"the quote that opens {where} is not closed", "close it; an apostrophe between single quotes is doubled"
    if "could not find expected ':'" in problem:
        return "this line is neither `key: value` nor a value", "a key is followed by `:` and a blank"
    return " ".join(filter(None, (context, problem))), None


# A recipe is at most eight levels deep; the limit keeps a hostile file from exhausting the interpreter's stack.
DEEPEST = 64

# Stands where a value could not be understood: what is wrong there is already reported, at that place.
PLACEHOLDER = ""

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_FRACTION = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None}

# What YAML 1.1 or 1.2 readers take for something else than text, by kind. Checked only where the first character
# allows it: nine of ten scalars of a recipe start with another one. Compiled when first used (re keeps them).
_SUSPECT_START = frozenset("0123456789+-.~=<tTfFnNyYoO")
_MISREAD = (
    (r"~|Null|NULL", "null", "null"),
    (r"True|TRUE|y|Y|yes|Yes|YES|on|On|ON", "a boolean", "true"),
    (r"False|FALSE|n|N|no|No|NO|off|Off|OFF", "a boolean", "false"),
    (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?", "a date", None),
    (r"[-+]?0x[0-9a-fA-F_]+", "a hexadecimal number", None),
    (r"[-+]?0b[01_]+", "a binary number", None),
    (r"[-+]?0o?[0-7_]+", "an octal number", None),
    (r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", "a number to the base 60", None),
    (r"[-+]?(?:\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)", "a number that JSON does not have", None),
    (r"[-+]?[0-9_]*(?:\.[0-9_]*)?[eE][-+]?[0-9]+", "a number with an exponent", None),
    (r"[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?|[-+]?\.[0-9][0-9_]*", "a number that JSON writes differently", None),
    (r"=|<<", "a key of YAML's own", None),
)


_WORD = 64

# Only double quotes can write one: libyaml refuses them bare.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

# YAML 1.1 ends a line at each of the first three, YAML 1.2 does not: one reader's comment is another one's key. A byte
# order mark is skipped at the start and invisible elsewhere. Surrogates come from words that are not UTF-8. The others
# turn the order around in which a reviewer sees what follows (CVE-2021-42574).
_UNCOMMON = re.compile(r"[\x85\u2028\u2029\ud800-\udfff\u202a-\u202e\u2066-\u2069]|(?<!^)\ufeff")


NOT_YAML = "YAML001"
DUPLICATE = "YAML002"
NOT_PLAIN = "YAML003"
EMPTY = "YAML004"
AMBIGUOUS = "YAML005"
SECOND = "YAML006"
KEY = "YAML007"
CONTROL = "YAML009"


@dataclass(slots=True)
class Document:
    """What a text says. `root` is None where it could not be read to the end; else it is there next to `problems`."""

    source: Source
    root: Any = None
    problems: list[Diagnostic] = field(default_factory=list)


def parse(source: Source) -> Document:
    """Read `source`; never raises for what is in the text."""
    document = Document(source)
    if (problem := _uncommon(source)) is not None:
        document.problems.append(problem)
        return document
    loader = yaml.CLoader(source.text)
    try:
        _NodeReader(document, loader.get_event).read()
    except yaml.MarkedYAMLError as error:
        said = error.problem or "", error.context or ""
        message, hint, mark = explain_syntax_error(source.text, *said, error.problem_mark, error.context_mark)
        document.problems.append(_problem(source, NOT_YAML, mark, f"this is not YAML: {message}", hint))
    except yaml.reader.ReaderError as error:
        before = source.text.encode("utf-8")[: error.position].decode("utf-8", "replace")
        document.problems.append(_unreadable(source, before, str(error.reason)))
    finally:
        loader.dispose()
    return document


def _uncommon(source: Source) -> Diagnostic | None:
    """A character that keeps a text from being read the same way everywhere."""
    found = _UNCOMMON.search(source.text)
    if found is None:
        return None
    before = source.text[: found.start()]
    turns = "\u202a" <= found[0] <= "\u2069"
    what = "after which text is shown in another order" if turns else "which YAML readers take differently"
    reason = f"U+{ord(found[0]):04X} stands here, {what}"
    return _unreadable(source, before, reason)


def _unreadable(source: Source, before: str, reason: str) -> Diagnostic:
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return diagnostic(NOT_YAML, f"this is not YAML: {reason}", None, (source.name, line, column))


def _problem(source: Source, code: str, mark: YamlMark | None, message: str, hint: str | None = None) -> Diagnostic:
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (None, None)
    return diagnostic(code, message, hint, (source.name, line, column))


class _NodeReader:
    """Builds nodes from events, remembering where each entry stands; it stops before the stream's end is passed."""

    def __init__(self, document: Document, following: Callable[[], Any]) -> None:
        self.document = document
        self.source = document.source
        self.next = following
        self.depth = 0

    def read(self) -> None:
        self.next()  # the stream's start
        event = self.next()
        if type(event) is not DocumentStartEvent:
            self.report(EMPTY, event.start_mark, "the file is empty")
            return
        self.document.root = self.value(self.next())
        self.next()  # the document's end
        event = self.next()
        if type(event) is not StreamEndEvent:
            self.report(
                SECOND,
                event.start_mark,
                "a second document starts here",
                "one file, one recipe",
            )

    def report(self, code: str, mark: YamlMark | None, message: str, hint: str | None = None) -> None:
        self.document.problems.append(_problem(self.source, code, mark, message, hint))

    def value(self, event: Any) -> Any:
        kind = type(event)
        if kind is AliasEvent:
            self.report(NOT_PLAIN, event.start_mark, f"`*{event.anchor}` is an alias", "write the value here")
            return PLACEHOLDER
        if event.anchor is not None:
            self.report(NOT_PLAIN, event.start_mark, f"`&{event.anchor}` is an anchor", "remove it")
        if event.tag is not None:
            tag = printable(str(event.tag)).replace("tag:yaml.org,2002:", "!!")
            self.report(NOT_PLAIN, event.start_mark, f"`{tag}` is a tag", "remove it; quote the value for text")
        if kind is ScalarEvent:
            return self.scalar(event)
        self.depth += 1
        if self.depth > DEEPEST:
            raise yaml.MarkedYAMLError(problem="nested too deeply", problem_mark=event.start_mark)
        node = self.mapping() if kind is MappingStartEvent else self.sequence()
        self.depth -= 1
        return node

    def mapping(self) -> MapNode:
        node = MapNode()
        following, source, spots = self.next, self.source, node.spots
        while type(event := following()) is not MappingEndEvent:
            key = self.key(event)
            said = following()
            if type(said) is ScalarEvent and said.anchor is None and said.tag is None:
                value = self.scalar(said)  # nine of ten; `value` would do the same
            else:
                value = self.value(said)
            if key is None:
                continue
            if key in node:
                first = node.spots[key].key.line + 1
                message = f"`{key}` stands here twice: it is already on line {first}"
                self.report(DUPLICATE, event.start_mark, message, "keep one of them")
                continue
            node[key] = value
            spots[key] = Spot(source, event.start_mark, said.start_mark)
        return node

    def key(self, event: Any) -> str | None:
        if type(event) is not ScalarEvent:
            self.value(event)
            self.report(KEY, event.start_mark, "a key must be text")
            return None
        text: str = event.value
        if not event.implicit[0]:
            self.no_control(event)
            return text
        if text == "<<":
            self.report(NOT_PLAIN, event.start_mark, "`<<` merges", "use extends, or write the keys here")
            return None
        if not text or text in _CONSTANTS or (text[0] in _SUSPECT_START and _suspect(text)):
            self.report(KEY, event.start_mark, f"the key `{text}` is not text", f'write "{text}"')
        return text

    def no_control(self, event: Any) -> None:
        if event.style == '"' and _CONTROL.search(event.value):
            message = "the text holds a control character, which would reach terminals and log readers"
            self.report(CONTROL, event.start_mark, message, "remove the escape sequence")

    def sequence(self) -> ListNode:
        node = ListNode()
        while type(event := self.next()) is not SequenceEndEvent:
            node.append(self.value(event))
            node.spots.append(Spot(self.source, event.start_mark, event.start_mark))
        return node

    def scalar(self, event: Any) -> Any:
        text: str = event.value
        if not event.implicit[0]:
            self.no_control(event)
            return text
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if not text:
            self.report(EMPTY, event.start_mark, "no value", 'write null, "" or the value')
            return PLACEHOLDER
        if text[0] not in _SUSPECT_START:
            return text
        if (number := _number(text)) is not None:
            return number
        if _suspect(text) and (found := misread(text)) is not None:
            what, plain = found
            hint = f'write "{text}" (quoted) if text is meant' + (f", {plain} if not" if plain else "")
            if plain is None and "number" in what:
                hint += ", a plain decimal number if a number is meant"
            message = f"`{text}` is read as {what} by some YAML readers and as text by others"
            self.report(AMBIGUOUS, event.start_mark, message, hint)
        return text


def _suspect(text: str) -> bool:
    return _suspect_word(text) if len(text) <= _WORD else _number(text) is not None or misread(text) is not None


# Keys come again in every file; longer texts are not worth their memory.
@lru_cache(maxsize=4096)
def _suspect_word(text: str) -> bool:
    return _number(text) is not None or misread(text) is not None


def _number(text: str) -> int | WrittenFloat | None:
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) < 4300 else None  # CPython refuses longer ones; no option is that large
    return WrittenFloat(text) if _FRACTION.fullmatch(text) else None


def is_plain_text(text: str) -> bool:
    """May `text` stand without quotes and still be text to every reader?"""
    return bool(text) and text not in _CONSTANTS and _number(text) is None and misread(text) is None


def misread(text: str) -> tuple[str, str | None] | None:
    """What plain `text` would be to another YAML reader, and the unambiguous spelling of that where there is one."""
    for pattern, what, plain in _MISREAD:
        if re.fullmatch(pattern, text):
            return what, plain
    return None
