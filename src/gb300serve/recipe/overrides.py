"""`--set PATH=VALUE`: the path's words, and the value laid over the resolved recipe."""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from gb300serve.core.errors import CommandLineError
from gb300serve.document.nodes import ListNode, MapNode, Source, Spot
from gb300serve.document.read import parse
from gb300serve.recipe.merge import Merge

_WORD = re.compile(r'\["(?P<quoted>[^"]*)"\]|(?P<plain>[^.\[\]]+)')
PREFIX = "--set "


class UnknownPathError(CommandLineError):
    """Nothing stands at the path."""

    def __init__(self, text: str, word: str, reason: str) -> None:
        super().__init__(f"--set {text}: {reason} at `{word}`", hint="`gb300serve show REF` prints every path")


class NotAssignmentError(CommandLineError):
    """The argument is not PATH=VALUE."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"--set {text}: not PATH=VALUE",
            hint="write keys and list indexes joined by dots, as in engine.options.cpu_offload_gb=70; "
            '["a.b"] stands for a key with dots',
        )


class BadValueError(CommandLineError):
    """The value is not YAML as a recipe has it."""

    def __init__(self, text: str, message: str, hint: str | None) -> None:
        super().__init__(f"--set {text}: {message}", hint=hint)


def split_path(text: str, assignment: str = "") -> tuple[str, ...]:
    """`engine.options["a.b"].0` → its words; raises NotAssignmentError, which speaks of the whole assignment."""
    words, position = [], 0
    while position < len(text):
        match = _WORD.match(text, position)
        if match is None:
            raise NotAssignmentError(assignment or text)
        words.append(match["plain"] if match["quoted"] is None else match["quoted"])
        position = match.end()
        following = text[position : position + 1]
        if following == ".":
            position += 1
        if following not in {"", ".", "["} or (following == "." and position == len(text)):
            raise NotAssignmentError(assignment or text)
    if not words:
        raise NotAssignmentError(assignment or text)
    return tuple(words)


def split_assignment(text: str) -> tuple[str, str]:
    """PATH and VALUE; an equals sign inside `["…"]` belongs to the path."""
    quoted = False
    for position, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif character == "=" and not quoted:
            return text[:position], text[position + 1 :]
    raise NotAssignmentError(text)


def apply(root: MapNode, assignments: Iterable[str]) -> MapNode:
    """`root` with each assignment laid over it; raises CommandLineError (exit 2)."""
    for text in assignments:
        path, value = split_assignment(text)
        words = split_path(path, text)
        if words[0] == "extends":
            raise UnknownPathError(text, "extends", "parents are followed before --set, and nothing is left to follow")
        if not value.strip():
            raise BadValueError(text, "no value", 'write null, "" or the value')
        document = parse(Source(f"{PREFIX}{text}", value))
        if document.problems:
            raise BadValueError(text, document.problems[0].message, document.problems[0].hint)
        if document.root is None:
            _must_exist(root, words, text)
        root = _lay(root, words, document.root, Spot(document.source, _START, _START), text)
    return root


def _must_exist(node: Any, words: tuple[str, ...], text: str) -> None:
    """`null` removes: what is not there cannot be meant."""
    for word in words:
        if isinstance(node, ListNode):
            node = node[_index(node, word, text)]
        elif isinstance(node, MapNode) and word in node:
            node = node[word]
        else:
            raise UnknownPathError(text, word, "there is nothing to remove")


def _index(items: ListNode, word: str, text: str) -> int:
    if not (word.isascii() and word.isdecimal() and int(word) < len(items)):
        held = "is 1 item" if len(items) == 1 else f"are {len(items)} items"
        raise UnknownPathError(text, word, f"there {held}, counted from 0, and none")
    return int(word)


class _Start(NamedTuple):
    line: int = 0
    column: int = 0


_START = _Start()


def _lay(root: MapNode, words: tuple[str, ...], value: Any, spot: Spot, text: str) -> MapNode:
    child = MapNode()
    node: Any = root
    target = child
    for depth, word in enumerate(words[:-1]):
        before = node.get(word) if isinstance(node, MapNode) else None
        # What is only passed through still stands in the file; a scalar there makes way for a mapping of this place.
        passed = isinstance(node, MapNode) and isinstance(before, MapNode | ListNode)
        kept = node.spots.get(word, spot) if passed else spot
        if isinstance(before, ListNode):
            changed = _with_item(before, words[depth + 1 :], value, spot, text)
            target.put(word, changed, kept)
            return _merged(root, child, text)
        deeper = MapNode()
        target.put(f"+{word}" if _is_json(words[: depth + 1], before) else word, deeper, kept)
        target, node = deeper, before
    target.put(words[-1], value, spot)
    return _merged(root, child, text)


def _is_json(words: tuple[str, ...], before: Any) -> bool:
    """Below an option the value is one JSON word: a path into it merges instead of replacing it."""
    return isinstance(before, MapNode) and len(words) == 3 and words[:2] == ("engine", "options")


def _merged(root: MapNode, child: MapNode, text: str) -> MapNode:
    merge = Merge()
    result = merge.lay(root, child, (), deep=False)
    if merge.problems:
        raise BadValueError(text, merge.problems[0].message, merge.problems[0].hint)
    return result


def _with_item(items: ListNode, words: tuple[str, ...], value: Any, spot: Spot, text: str) -> ListNode:
    index = _index(items, words[0], text)
    result = ListNode()
    result.extend(items)
    result.spots.extend(items.spots)
    item = items[index]
    if len(words) == 1:
        result[index], result.spots[index] = value, spot
    elif isinstance(item, ListNode):
        result[index] = _with_item(item, words[1:], value, spot, text)
    elif isinstance(item, MapNode):
        result[index] = _lay(item, words[1:], value, spot, text)
    else:
        raise UnknownPathError(text, words[1], "a single value has no parts, and none")
    return result
