"""Parse YAML to nodes: YAML 1.1 as libyaml parses it, limited to what all YAML readers understand the same way.

Values are text, `true`/`false`, `null`, JSON's integers and decimal fractions, mappings and lists. A value that YAML
readers interpret differently is an error with its position. All errors of a text are reported at once.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
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

Explanation = tuple[str, str | None, YamlMark | None]
"""The message after `invalid YAML:`, a hint, and the position."""


def explain_syntax_error(
    text: str, problem: str, context: str, mark: YamlMark | None, opened: YamlMark | None
) -> Explanation:
    """Explain a syntax error by its usual cause, else with libyaml's own `problem` and `context`.

    `mark` is the position (from 0), `opened` the start of the construct that is incomplete.
    """
    before, sign = "", ""
    if mark is not None:
        line = "".join(text.split("\n")[mark.line : mark.line + 1])
        before, sign = line[: mark.column], line[mark.column : mark.column + 1]
    message, hint = _usual_cause(problem, before, sign) or _unclosed(problem, context, opened)
    at = opened if "could not find expected ':'" in problem else None
    return message, hint, at or mark or opened


def _usual_cause(problem: str, before: str, sign: str) -> tuple[str, str | None] | None:
    if sign == "\t" or "tab character" in problem:
        return "the line is indented with a tab", "indent with spaces"
    if "cannot start any token" in problem:
        return f"unquoted text cannot begin with `{sign}`", "quote the value"
    if "mapping values are not allowed" in problem:
        if ": " in before:
            return "the line contains a second `: `", "quote the value, or write one key per line"
        return (
            "the line is a key, but the line above it already has a value",
            "indent it like the keys above; a key is followed by `:` and a space",
        )
    if "expected key" in problem or "expected '-' indicator" in problem:
        return _stray(before, sign, in_list="'-'" in problem)
    return None


def _stray(before: str, sign: str, *, in_list: bool) -> tuple[str, str | None]:
    if before.strip(" -"):
        return (
            "the value ends before this position",
            "check the quotes and brackets before it, or quote the whole value",
        )
    if in_list:
        return "the line is among the items of a list, but has no `-`", "indent it like the key that it belongs to"
    if sign == "-":
        return "the item does not belong to a list above it", "indent it like the other items of its list"
    return "the indentation matches no line above", "indent it like the keys that it belongs to"


def _unclosed(problem: str, context: str, opened: YamlMark | None) -> tuple[str, str | None]:
    where = f"on line {opened.line + 1}" if opened is not None else "here"
    if "expected ',' or '" in problem:
        return f"the `{'{' if '}' in problem else '['}` that opens {where} is not closed", f"write `{problem[-2]}`"
    if "unexpected end of stream" in problem and "quoted" in context:
        return (
            f"the quote that opens {where} is not closed",
            "close it; write an apostrophe between single quotes twice",
        )
    if "could not find expected ':'" in problem:
        return "the line is neither `key: value` nor a value", "a key is followed by `:` and a space"
    return " ".join(filter(None, (context, problem))), None


# Recipes have at most eight levels. The limit keeps a hostile file from exhausting the interpreter's stack.
MAX_DEPTH = 64

# Replaces a value that could not be read; the error at its position is already reported.
PLACEHOLDER = ""

_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_FRACTION = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None}

# Texts that YAML 1.1 or 1.2 readers do not read as text, by type. They are checked only if the first character allows
# it, which is true for one in ten scalars of a recipe. Patterns are compiled on first use (re caches them).
_SUSPECT_START = frozenset("0123456789+-.~=<tTfFnNyYoO")
_MISREAD = (
    (r"~|Null|NULL", "null", "null"),
    (r"True|TRUE|y|Y|yes|Yes|YES|on|On|ON", "a boolean", "true"),
    (r"False|FALSE|n|N|no|No|NO|off|Off|OFF", "a boolean", "false"),
    (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?", "a date", None),
    (r"[-+]?0x[0-9a-fA-F_]+", "a hexadecimal number", None),
    (r"[-+]?0b[01_]+", "a binary number", None),
    (r"[-+]?0o?[0-7_]+", "an octal number", None),
    (r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?", "a base-60 number", None),
    (r"[-+]?(?:\.(?:inf|Inf|INF))|\.(?:nan|NaN|NAN)", "a number that JSON cannot express", None),
    (r"[-+]?[0-9_]*(?:\.[0-9_]*)?[eE][-+]?[0-9]+", "a number with an exponent", None),
    (r"[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?|[-+]?\.[0-9][0-9_]*", "a number not written as in JSON", None),
    (r"=|<<", "a special YAML key", None),
)


# Texts up to this length are cached: keys recur in every file.
_CACHED_LENGTH = 64

# Only double-quoted texts can contain them: libyaml rejects them elsewhere.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

# The first three end a line in YAML 1.1 but not in YAML 1.2, so a comment of one reader is a key of the other. A byte
# order mark is skipped at the start and invisible elsewhere. Surrogates come from arguments that are not UTF-8. The
# others reverse the displayed order of the following text (CVE-2021-42574).
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
    """A parsed text. `root` is None if the text could not be parsed to the end; `problems` may exist in both cases."""

    source: Source
    root: Any = None
    problems: list[Diagnostic] = field(default_factory=list)


def parse(source: Source) -> Document:
    """Parse `source`; errors in the text are reported in `problems`, never raised."""
    document = Document(source)
    if (problem := _uncommon(source)) is not None:
        document.problems.append(problem)
        return document
    loader = yaml.CLoader(source.text)
    try:
        _NodeReader(document, loader.get_event).read()
    except (yaml.MarkedYAMLError, yaml.reader.ReaderError) as error:
        document.problems.append(_syntax_problem(source, error))
    finally:
        loader.dispose()
    return document


def _syntax_problem(source: Source, error: yaml.MarkedYAMLError | yaml.reader.ReaderError) -> Diagnostic:
    if isinstance(error, yaml.MarkedYAMLError):
        problem_and_context = error.problem or "", error.context or ""
        message, hint, mark = explain_syntax_error(
            source.text, *problem_and_context, error.problem_mark, error.context_mark
        )
        return _problem(source, NOT_YAML, mark, f"invalid YAML: {message}", hint)
    before = source.text.encode("utf-8")[: error.position].decode("utf-8", "replace")
    return _unreadable(source, before, str(error.reason))


def replace_scalar(text: str, line: int, column: int, new: str) -> str:
    """`text` with the key or value that begins at a position (from 1) replaced; all else stays as it is."""
    loader = yaml.CLoader(text)
    following: Callable[[], Any] = loader.get_event
    try:
        while type(event := following()) is not StreamEndEvent:
            start, end = event.start_mark, event.end_mark
            if type(event) is ScalarEvent and (start.line + 1, start.column + 1) == (line, column):
                return text if event.style in ("|", ">") else text[: start.index] + new + text[end.index :]
    except yaml.YAMLError:
        pass  # nothing after an error has a position
    finally:
        loader.dispose()
    return text


def _uncommon(source: Source) -> Diagnostic | None:
    match = _UNCOMMON.search(source.text)
    if match is None:
        return None
    is_bidirectional = "\u202a" <= match[0] <= "\u2069"
    effect = "changes the displayed order of the text" if is_bidirectional else "is read differently by YAML readers"
    return _unreadable(source, source.text[: match.start()], f"U+{ord(match[0]):04X} {effect}")


def _unreadable(source: Source, before: str, reason: str) -> Diagnostic:
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return diagnostic(NOT_YAML, f"invalid YAML: {reason}", None, (source.name, line, column))


def _problem(source: Source, code: str, mark: YamlMark | None, message: str, hint: str | None = None) -> Diagnostic:
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (None, None)
    return diagnostic(code, message, hint, (source.name, line, column))


class _NodeReader:
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
            self.report(SECOND, event.start_mark, "a second document starts here", "write one recipe per file")

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
            self.report(NOT_PLAIN, event.start_mark, f"`{tag}` is a tag", "remove it; quote the value if text is meant")
        if kind is ScalarEvent:
            return self.scalar(event)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem="nested too deeply", problem_mark=event.start_mark)
        node = self.mapping() if kind is MappingStartEvent else self.sequence()
        self.depth -= 1
        return node

    def mapping(self) -> MapNode:
        node = MapNode()
        following, source, spots = self.next, self.source, node.spots
        while type(event := following()) is not MappingEndEvent:
            key = self.key(event)
            value_event = following()
            if type(value_event) is ScalarEvent and value_event.anchor is None and value_event.tag is None:
                value = self.scalar(value_event)  # a shortcut of `value` for nine of ten values
            else:
                value = self.value(value_event)
            if key is None:
                continue
            if key in node:
                first = node.spots[key].key.line + 1
                message = f"duplicate key `{key}`: it is already on line {first}"
                self.report(DUPLICATE, event.start_mark, message, "keep one of them")
                continue
            node[key] = value
            spots[key] = Spot(source, event.start_mark, value_event.start_mark)
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
            self.report(NOT_PLAIN, event.start_mark, "`<<` is a merge key", "use extends, or write the keys here")
            return None
        if not text or text in _CONSTANTS or (text[0] in _SUSPECT_START and _suspect(text)):
            self.report(KEY, event.start_mark, f"the key `{text}` is not text", f'write "{text}"')
        return text

    def no_control(self, event: Any) -> None:
        if event.style == '"' and _CONTROL.search(event.value):
            message = "the text contains a control character, which terminals and log readers would interpret"
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
        if _suspect(text) and (reading := misread(text)) is not None:
            kind, plain = reading
            hint = f'write "{text}" (quoted) if text is meant' + (f", else {plain}" if plain else "")
            if plain is None and "number" in kind:
                hint += f", or {_decimal(text) or 'a plain decimal number'} if a number is meant"
            message = f"`{text}` is read as {kind} by some YAML readers and as text by others"
            self.report(AMBIGUOUS, event.start_mark, message, hint)
        return text


def _suspect(text: str) -> bool:
    return (
        _cached_suspect(text) if len(text) <= _CACHED_LENGTH else _number(text) is not None or misread(text) is not None
    )


@lru_cache(maxsize=4096)
def _cached_suspect(text: str) -> bool:
    return _number(text) is not None or misread(text) is not None


def _number(text: str) -> int | WrittenFloat | None:
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) < 4300 else None  # CPython rejects longer ones
    return WrittenFloat(text) if _FRACTION.fullmatch(text) else None


def _decimal(text: str) -> str | None:
    """A number with an exponent, underscores or a missing digit, as JSON without an exponent has it."""
    try:
        number = Decimal(text.replace("_", ""))
    except InvalidOperation:
        return None
    return f"{number:f}" if number.is_finite() and abs(number.adjusted()) < 20 else None


def is_plain_text(text: str) -> bool:
    """Whether every YAML reader reads `text` without quotes as text."""
    return bool(text) and text not in _CONSTANTS and _number(text) is None and misread(text) is None


def misread(text: str) -> tuple[str, str | None] | None:
    """The type that another YAML reader gives to unquoted `text`, and its unambiguous spelling, if there is one."""
    for pattern, what, plain in _MISREAD:
        if re.fullmatch(pattern, text):
            return what, plain
    return None


# `<<` copies keys, so a chain of merges grows with the square of the text.
MAX_MERGED_KEYS = 50_000


def parse_foreign(source: Source) -> tuple[list[Any], Diagnostic | None]:
    """The documents of a YAML text that other programs read, and the error that ends the reading.

    Anchors, aliases and `<<` are resolved, so parts of a document may be the same object; tags are ignored.
    """
    # Surrogates come from bytes that are not UTF-8, which libyaml does not accept.
    loader = yaml.CLoader(source.text.encode("utf-8", "replace"))
    documents: list[Any] = []
    try:
        _ForeignReader(source, loader.get_event).read(documents)
    except (yaml.MarkedYAMLError, yaml.reader.ReaderError) as error:
        return documents, _syntax_problem(source, error)
    finally:
        loader.dispose()
    return documents, None


def _foreign_error(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


class _ForeignReader:
    def __init__(self, source: Source, following: Callable[[], Any]) -> None:
        self.source = source
        self.next = following
        self.anchors: dict[str, Any] = {}
        self.depth = 0
        self.merged = 0

    def read(self, documents: list[Any]) -> None:
        self.next()  # the stream's start
        while type(self.next()) is DocumentStartEvent:
            self.anchors = {}
            documents.append(self.value(self.next()))
            self.next()  # the document's end

    def value(self, event: Any) -> Any:
        if type(event) is AliasEvent:
            if event.anchor not in self.anchors:
                raise _foreign_error(f"the alias `*{event.anchor}` has no anchor", event.start_mark)
            return self.anchors[event.anchor]
        if type(event) is ScalarEvent:
            node = _foreign_scalar(event)
        else:
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise _foreign_error("nested too deeply", event.start_mark)
            node = self.mapping() if type(event) is MappingStartEvent else self.sequence()
            self.depth -= 1
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def mapping(self) -> MapNode:
        node, merged = MapNode(), list[Any]()
        while type(event := self.next()) is not MappingEndEvent:
            key, value_event = self.value(event), self.next()
            value = self.value(value_event)
            if key == "<<" and type(event) is ScalarEvent and event.implicit[0]:
                merged += value if isinstance(value, list) else [value]
                continue
            text = key if isinstance(key, str) else event.value if type(event) is ScalarEvent else None
            if text is None:
                raise _foreign_error("a key must be text", event.start_mark)
            if text in node:
                raise _foreign_error(f"duplicate key `{text}`", event.start_mark)
            node.put(text, value, Spot(self.source, event.start_mark, value_event.start_mark))
        for parent in merged:
            self.merge(node, parent)
        return node

    def merge(self, node: MapNode, parent: Any) -> None:
        """Add the keys of `<<` that the mapping does not have; earlier mappings of a list take precedence."""
        for key, value in parent.items() if isinstance(parent, MapNode) else ():
            self.merged += 1
            if self.merged > MAX_MERGED_KEYS:
                raise _foreign_error("`<<` merges too many keys", None)
            if key not in node:
                node.put(key, value, parent.spots.get(key))

    def sequence(self) -> ListNode:
        node = ListNode()
        while type(event := self.next()) is not SequenceEndEvent:
            node.put(self.value(event), Spot(self.source, event.start_mark, event.start_mark))
        return node


_FOREIGN_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}


def _foreign_scalar(event: Any) -> Any:
    """Text, a boolean, null, an integer or a fraction; all other spellings of numbers stay text."""
    text: str = event.value
    if not event.implicit[0]:
        return text
    if text in _FOREIGN_CONSTANTS:
        return _FOREIGN_CONSTANTS[text]
    number = _number(text) if text[0] in _SUSPECT_START else None
    return text if number is None else number
