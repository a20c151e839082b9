"""YAML as read: plain dictionaries and lists that also know where each of their entries stands."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

PathItem = str | int
Path = tuple[PathItem, ...]


class YamlMark(Protocol):
    """libyaml's position: lines and columns count from 0."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Source:
    """A text and where it came from: `name` is the file's path, or what else it is called in messages."""

    name: str
    text: str


class Spot(NamedTuple):
    """Where an entry stands: its source, its key (or dash) and its value."""

    source: Source
    key: YamlMark
    value: YamlMark


class Place(NamedTuple):
    """A position as people count it: lines and columns from 1."""

    file: str
    line: int
    column: int


class MapNode(dict[str, Any]):
    """A YAML mapping; `spots` has one entry per key."""

    __slots__ = ("spots",)

    def __init__(self) -> None:
        super().__init__()
        self.spots: dict[str, Spot] = {}

    def put(self, key: str, value: Any, spot: Spot | None) -> None:
        self[key] = value
        if spot is not None:
            self.spots[key] = spot

    def drop(self, key: str) -> None:
        self.pop(key, None)
        self.spots.pop(key, None)


class ListNode(list[Any]):
    """A YAML sequence; `spots` has one entry per item."""

    __slots__ = ("spots",)

    def __init__(self) -> None:
        super().__init__()
        self.spots: list[Spot | None] = []

    def put(self, value: Any, spot: Spot | None) -> None:
        self.append(value)
        self.spots.append(spot)


def spot_at(root: Any, path: Sequence[PathItem]) -> tuple[Spot | None, bool]:
    """The spot of the entry that `path` names, or of its nearest ancestor; and whether it is the entry itself."""
    node, found = root, None
    for depth, item in enumerate(path):
        spot = _spot(node, item)
        if spot is None:
            return found, False
        found = spot
        node = node[item]
        if depth == len(path) - 1:
            return found, True
    return found, not path


def _spot(node: Any, item: PathItem) -> Spot | None:
    if isinstance(node, MapNode) and isinstance(item, str):
        return node.spots.get(item)
    if isinstance(node, ListNode) and isinstance(item, int) and item < len(node.spots):
        return node.spots[item]
    return None


def place_of(spot: Spot, *, of_key: bool = False) -> Place:
    """The position of the entry's value, or of its key (or dash)."""
    mark = spot.key if of_key else spot.value
    return Place(spot.source.name, mark.line + 1, mark.column + 1)


class Text(NamedTuple):
    """A text and where it stands; `name` is the nearest key above it."""

    path: Path
    name: str
    value: str


class DocumentTexts(NamedTuple):
    """What is written below a node, in the order of the file; `keys` have the values that stand under them."""

    texts: list[Text]
    keys: list[tuple[Path, str, Any]]


def document_texts(node: Any) -> DocumentTexts:
    """The texts and keys below `node`."""
    found = DocumentTexts([], [])
    _walk(node, (), "", found)
    return found


def _walk(node: Any, path: Path, name: str, found: DocumentTexts) -> None:
    """Fills two lists instead of yielding: a generator a level costs three times as much, once for each file."""
    if isinstance(node, dict):
        for key, value in node.items():
            below = (*path, key)
            found.keys.append((below, key, value))
            if type(value) is str:
                found.texts.append(Text(below, key, value))
            elif isinstance(value, (dict, list)):
                _walk(value, below, key, found)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            if type(value) is str:
                found.texts.append(Text((*path, index), name, value))
            elif isinstance(value, (dict, list)):
                _walk(value, (*path, index), name, found)
    elif isinstance(node, str):
        found.texts.append(Text(path, name, node))
