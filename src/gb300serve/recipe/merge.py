"""`extends`: a child's nodes laid over its parent's.

Mappings merge key by key (a key keeps its parent's place, a new key comes last), anything else replaces, `null`
removes. Engine options replace as a whole, and so do choices of one key (`container.gpus`, a secret). `+key` merges a
mapping deeply or appends to a list.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.core.errors import CommandLineError
from gb300serve.document.nodes import ListNode, MapNode, Path, Source, Spot, place_of
from gb300serve.document.read import parse

# `evidence` belongs to the release that was measured; `extends` was followed.
NEVER_INHERITED = ("evidence", "extends")


class Merge:
    """One merge; `problems` holds what could not be merged."""

    def __init__(self) -> None:
        self.problems: list[Diagnostic] = []

    def inherit(self, parent: MapNode, child: MapNode) -> MapNode:
        """The child's resolved nodes; neither argument is changed."""
        base = MapNode()
        for key, value in parent.items():
            if key not in NEVER_INHERITED:
                base.put(key, value, parent.spots.get(key))
        return self.lay(base, child, (), deep=False)

    def lay(self, parent: MapNode, child: MapNode, path: Path, *, deep: bool) -> MapNode:
        """`child` over `parent`, both at `path`; `deep` merges also what replaces as a whole."""
        result = MapNode()
        for key, value in parent.items():
            result.put(key, value, parent.spots.get(key))
        for key, value in child.items():
            spot = child.spots[key]
            if key.startswith("+"):
                self._add(result, key[1:], value, spot)
            elif value is None:
                result.drop(key)
            else:
                result.put(key, self._replacement(result.get(key), value, (*path, key), deep=deep), spot)
        return result

    def _replacement(self, before: Any, value: Any, path: Path, *, deep: bool) -> Any:
        if not isinstance(value, MapNode) or (replaces_whole(path) and not deep):
            return value
        if before is None and _stands_alone(value):
            return value
        return self.lay(before if isinstance(before, MapNode) else MapNode(), value, path, deep=deep)

    def _add(self, result: MapNode, key: str, value: Any, spot: Spot) -> None:
        before = result.get(key)
        if isinstance(before, MapNode) and isinstance(value, MapNode):
            result.put(key, self.lay(before, value, (), deep=True), spot)
        elif isinstance(before, ListNode) and isinstance(value, ListNode):
            result.put(key, _joined(before, value), spot)
        else:
            self.problems.append(_nothing_to_add_to(key, before, value, spot))


def replaces_whole(path: Path) -> bool:
    """Is the mapping at `path` one value rather than a set of keys?"""
    return (len(path) == 3 and path[:2] in {("engine", "options"), ("container", "secrets")}) or path == (
        "container",
        "gpus",
    )


def _stands_alone(node: MapNode) -> bool:
    """Whether laying the node over nothing gives the node again: nothing to add, nothing to remove."""
    for key, value in node.items():
        if value is None or key[:1] == "+" or (isinstance(value, MapNode) and not _stands_alone(value)):
            return False
    return True


def _joined(first: ListNode, second: ListNode) -> ListNode:
    result = ListNode()
    for node in (first, second):
        result.extend(node)
        result.spots.extend(node.spots)
    return result


def _nothing_to_add_to(key: str, before: Any, value: Any, spot: Spot) -> Diagnostic:
    place = place_of(spot, of_key=True)
    kinds = {MapNode: "a mapping", ListNode: "a list", type(None): "nothing"}
    was, new = (kinds.get(type(item), "a single value") for item in (before, value))
    message = f"`+{key}` cannot add {new} to {was}"
    return diagnostic("EXT004", message, f"write `{key}:` to replace it", place)


_WORD = re.compile(r'\["(?P<quoted>[^"]*)"\]|(?P<plain>[^.\[\]]+)')
ASSIGNMENT_PREFIX = "--set "


class UnknownPathError(CommandLineError):
    """Nothing stands at the path."""

    def __init__(self, text: str, word: str, reason: str) -> None:
        super().__init__(f"--set {text}: {reason} at `{word}`", hint="`gb300serve show REF` prints every path")


class InvalidAssignmentError(CommandLineError):
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
            raise InvalidAssignmentError(assignment or text)
        words.append(match["plain"] if match["quoted"] is None else match["quoted"])
        position = match.end()
        following = text[position : position + 1]
        if following == ".":
            position += 1
        if following not in {"", ".", "["} or (following == "." and position == len(text)):
            raise InvalidAssignmentError(assignment or text)
    if not words:
        raise InvalidAssignmentError(assignment or text)
    return tuple(words)


def split_assignment(text: str) -> tuple[str, str]:
    """PATH and VALUE; an equals sign inside `["…"]` belongs to the path."""
    quoted = False
    for position, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif character == "=" and not quoted:
            return text[:position], text[position + 1 :]
    raise InvalidAssignmentError(text)


def apply_assignments(root: MapNode, assignments: Iterable[str]) -> MapNode:
    """`root` with each assignment laid over it; raises CommandLineError (exit 2)."""
    for text in assignments:
        path, value = split_assignment(text)
        words = split_path(path, text)
        if words[0] == "extends":
            raise UnknownPathError(text, "extends", "parents are followed before --set, and nothing is left to follow")
        if not value.strip():
            raise BadValueError(text, "no value", 'write null, "" or the value')
        document = parse(Source(f"{ASSIGNMENT_PREFIX}{text}", value))
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
