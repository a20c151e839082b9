"""Merging: a child over its parent (`extends`), and `--set` assignments over a recipe.

Mappings merge key by key (a key keeps its parent's place, a new key comes last), other values replace, `null` removes.
An engine option is replaced as a whole, and so are `container.gpus` and a secret. `+key` merges a mapping deeply or
appends to a list; where the parent has no such key, it is `key`. A mount below `+mounts` with `replace: true` replaces
the parent's mount of the same target.
"""

import posixpath
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.core.errors import Action, CommandLineError
from gb300serve.document.nodes import ListNode, MapNode, Path, Source, Spot, place_of
from gb300serve.document.read import parse

# `evidence` belongs to the release that was measured, and `extends` is resolved.
NEVER_INHERITED = ("evidence", "extends")
# The key of an entry below `+mounts` that replaces the parent's mount of the same target.
REPLACE = "replace"


class Merge:
    """One merge; `problems` has the entries that could not be merged."""

    def __init__(self) -> None:
        self.problems: list[Diagnostic] = []

    def inherit(self, parent: MapNode, child: MapNode) -> MapNode:
        """The resolved nodes of the child; neither argument is modified."""
        base = MapNode()
        for key, value in parent.items():
            if key not in NEVER_INHERITED:
                base.put(key, value, parent.spots.get(key))
        return self.overlay(base, child, (), deep=False)

    def overlay(self, parent: MapNode, child: MapNode, path: Path, *, deep: bool) -> MapNode:
        """`child` over `parent`, both at `path`; `deep` also merges values that are otherwise replaced as a whole."""
        result = MapNode()
        for key, value in parent.items():
            result.put(key, value, parent.spots.get(key))
        for key, value in child.items():
            spot = child.spots[key]
            if key.startswith("+"):
                self._add(result, (*path, key[1:]), value, spot)
            elif value is None:
                result.drop(key)
            else:
                result.put(key, self._replacement(result.get(key), value, (*path, key), deep=deep), spot)
        return result

    def _replacement(self, before: Any, value: Any, path: Path, *, deep: bool) -> Any:
        if not isinstance(value, MapNode) or (is_single_value(path) and not deep):
            return value
        if before is None and _is_plain(value):
            return value
        return self.overlay(before if isinstance(before, MapNode) else MapNode(), value, path, deep=deep)

    def _add(self, result: MapNode, path: Path, value: Any, spot: Spot) -> None:
        key = str(path[-1])
        before = result.get(key)
        if isinstance(value, MapNode) and isinstance(before, MapNode | None):
            result.put(key, self.overlay(before or MapNode(), value, path, deep=True), spot)
        elif isinstance(value, ListNode) and isinstance(before, ListNode | None):
            added = self._with_replacements if path == ("container", "mounts") else _joined
            result.put(key, added(before or ListNode(), value), spot)
        else:
            self.problems.append(_nothing_to_add_to(key, before, value, spot))

    def _with_replacements(self, mounts: ListNode, added: ListNode) -> ListNode:
        """The mounts with the added ones; one with `replace: true` takes the place of the mount with its target."""
        result = _joined(mounts, ListNode())
        for entry, spot in zip(added, added.spots, strict=True):
            if not isinstance(entry, MapNode) or REPLACE not in entry:
                result.put(entry, spot)
                continue
            mount = without_key(entry, REPLACE)
            same = [n for n, other in enumerate(mounts) if _target(other) == _target(mount)]
            if entry[REPLACE] is True and same:
                result[same[0]], result.spots[same[0]] = mount, spot
            else:
                self.problems.append(_nothing_to_replace(entry, mounts))
        return result


def is_single_value(path: Path) -> bool:
    """Whether the mapping at `path` is one value, not a set of keys."""
    if path == ("container", "gpus"):
        return True
    return len(path) == 3 and path[:2] in {("engine", "options"), ("container", "secrets")}


def _is_plain(node: MapNode) -> bool:
    """Whether the node contains neither `null` nor `+key`, so that merging it with nothing returns it unchanged."""
    for key, value in node.items():
        if value is None or key[:1] == "+" or (isinstance(value, MapNode) and not _is_plain(value)):
            return False
    return True


def _joined(first: ListNode, second: ListNode) -> ListNode:
    result = ListNode()
    for node in (first, second):
        result.extend(node)
        result.spots.extend(node.spots)
    return result


def without_key(node: MapNode, key: str) -> MapNode:
    """A copy without one entry."""
    result = MapNode()
    for name, value in node.items():
        if name != key:
            result.put(name, value, node.spots.get(name))
    return result


def _target(mount: Any) -> str | None:
    target = mount.get("target") if isinstance(mount, MapNode) else None
    return posixpath.normpath(target) if isinstance(target, str) else None


def _nothing_to_replace(entry: MapNode, mounts: ListNode) -> Diagnostic:
    place = place_of(entry.spots[REPLACE], of_key=True)
    if entry[REPLACE] is not True:
        return diagnostic("EXT005", "`replace` is either `true` or left out", "write `replace: true`", place)
    known = ", ".join(target for mount in mounts if (target := _target(mount)))
    hint = f"the parent's mounts have the targets {known}" if known else "the parent has no mounts: remove `replace`"
    return diagnostic("EXT005", f"the parent has no mount with the target {entry.get('target')}", hint, place)


def _nothing_to_add_to(key: str, before: Any, value: Any, spot: Spot) -> Diagnostic:
    place = place_of(spot, of_key=True)
    kinds = {MapNode: "a mapping", ListNode: "a list", type(None): "nothing"}
    was, new = (kinds.get(type(item), "a single value") for item in (before, value))
    return diagnostic("EXT004", f"`+{key}` cannot add {new} to {was}", f"write `{key}:` to replace it", place)


_KEY = re.compile(r'\["(?P<quoted>[^"]*)"\]|(?P<plain>[^.\[\]]+)')
_PATH = re.compile(r'(?:\["[^"]*"\]|[^.\[\]]+)(?:\.?\["[^"]*"\]|\.[^.\[\]]+)*')
_ASSIGNMENT = re.compile(r'((?:[^"=]|"[^"]*")*)=(.*)', re.DOTALL)
ASSIGNMENT_PREFIX = "--set "


class UnknownPathError(CommandLineError):
    """The path does not exist."""

    def __init__(self, text: str, key: str, reason: str) -> None:
        super().__init__(f"--set {text}: {reason} at `{key}`", suggest=(Action("show", "see every path", ref="REF"),))


class InvalidAssignmentError(CommandLineError):
    """The argument is not PATH=VALUE."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"--set {text}: not PATH=VALUE",
            hint="join keys and list indexes with dots, such as engine.options.cpu_offload_gb=70; "
            'write a key that contains dots as ["a.b"]',
        )


class BadValueError(CommandLineError):
    """The value is not valid in a recipe."""

    def __init__(self, text: str, message: str, hint: str | None) -> None:
        super().__init__(f"--set {text}: {message}", hint=hint)


def split_path(text: str, assignment: str = "") -> tuple[str, ...]:
    """`engine.options["a.b"].0` → its keys; raises InvalidAssignmentError, which quotes the whole assignment."""
    if not _PATH.fullmatch(text):
        raise InvalidAssignmentError(assignment or text)
    return tuple(key["plain"] if key["quoted"] is None else key["quoted"] for key in _KEY.finditer(text))


def split_assignment(text: str) -> tuple[str, str]:
    """PATH and VALUE; an equals sign inside `["…"]` is part of the path."""
    match = _ASSIGNMENT.fullmatch(text)
    if match is None:
        raise InvalidAssignmentError(text)
    return match[1], match[2]


def apply_assignments(root: MapNode, assignments: Iterable[str]) -> MapNode:
    """Apply the assignments to `root`; raises CommandLineError (exit 2)."""
    for text in assignments:
        path, value = split_assignment(text)
        keys = split_path(path, text)
        if keys[0] == "extends":
            raise UnknownPathError(text, "extends", "parents are resolved before --set, nothing can be set")
        if not value.strip():
            raise BadValueError(text, "no value", 'write null, "" or the value')
        document = parse(Source(f"{ASSIGNMENT_PREFIX}{text}", value))
        if document.problems:
            raise BadValueError(text, document.problems[0].message, document.problems[0].hint)
        if document.root is None:
            _check_exists(root, keys, text)
        root = _assign(root, keys, document.root, Spot(document.source, _START, _START), text)
    return root


def _check_exists(node: Any, keys: tuple[str, ...], text: str) -> None:
    for key in keys:
        if isinstance(node, ListNode):
            node = node[_index(node, key, text)]
        elif isinstance(node, MapNode) and key in node:
            node = node[key]
        else:
            raise UnknownPathError(text, key, "nothing to remove")


def _index(items: ListNode, key: str, text: str) -> int:
    if not (key.isascii() and key.isdecimal() and int(key) < len(items)):
        count = "1 item" if len(items) == 1 else f"{len(items)} items"
        raise UnknownPathError(text, key, f"the list has {count} (counted from 0), none")
    return int(key)


class _Start(NamedTuple):
    line: int = 0
    column: int = 0


_START = _Start()


def _assign(root: MapNode, keys: tuple[str, ...], value: Any, spot: Spot, text: str) -> MapNode:
    child = MapNode()
    node: Any = root
    target = child
    for depth, key in enumerate(keys[:-1]):
        before = node.get(key) if isinstance(node, MapNode) else None
        # A collection on the way keeps its position in the file. A scalar is replaced by a mapping of the assignment.
        in_file = isinstance(node, MapNode) and isinstance(before, MapNode | ListNode)
        key_spot = node.spots.get(key, spot) if in_file else spot
        if isinstance(before, ListNode):
            target.put(key, _with_item(before, keys[depth + 1 :], value, spot, text), key_spot)
            return _merged(root, child, text)
        deeper = MapNode()
        target.put(f"+{key}" if _is_json(keys[: depth + 1], before) else key, deeper, key_spot)
        target, node = deeper, before
    target.put(keys[-1], value, spot)
    return _merged(root, child, text)


def _is_json(keys: tuple[str, ...], before: Any) -> bool:
    """An option that is a mapping is one JSON argument: a path into it merges instead of replacing it."""
    return isinstance(before, MapNode) and len(keys) == 3 and keys[:2] == ("engine", "options")


def _merged(root: MapNode, child: MapNode, text: str) -> MapNode:
    merge = Merge()
    result = merge.overlay(root, child, (), deep=False)
    if merge.problems:
        raise BadValueError(text, merge.problems[0].message, merge.problems[0].hint)
    return result


def _with_item(items: ListNode, keys: tuple[str, ...], value: Any, spot: Spot, text: str) -> ListNode:
    index = _index(items, keys[0], text)
    result = _joined(items, ListNode())
    item = items[index]
    if len(keys) == 1:
        result[index], result.spots[index] = value, spot
    elif isinstance(item, ListNode):
        result[index] = _with_item(item, keys[1:], value, spot, text)
    elif isinstance(item, MapNode):
        result[index] = _assign(item, keys[1:], value, spot, text)
    else:
        raise UnknownPathError(text, keys[1], "a single value has no keys, none")
    return result
