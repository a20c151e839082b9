"""`extends`: a child's nodes laid over its parent's.

Mappings merge key by key (a key keeps its parent's place, a new key comes last), anything else replaces, `null`
removes. Engine options replace as a whole, and so do choices of one key (`container.gpus`, a secret). `+key` merges a
mapping deeply or appends to a list.
"""

from typing import Any

from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.document.nodes import ListNode, MapNode, Path, Spot, place_of

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
