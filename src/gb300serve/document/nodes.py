"""YAML nodes: dictionaries and lists with the position of each entry."""

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
    """A text; `name` is the path of its file, or another name for messages."""

    name: str
    text: str


class Spot(NamedTuple):
    """The position of an entry: its source, its key (or dash) and its value."""

    source: Source
    key: YamlMark
    value: YamlMark


class Place(NamedTuple):
    """A position in a file: lines and columns count from 1."""

    file: str
    line: int
    column: int


class MapNode(dict[str, Any]):
    """A YAML mapping; `spots` has the position of each key."""

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
    """A YAML sequence; `spots` has the position of each item."""

    __slots__ = ("spots",)

    def __init__(self) -> None:
        super().__init__()
        self.spots: list[Spot | None] = []

    def put(self, value: Any, spot: Spot | None) -> None:
        self.append(value)
        self.spots.append(spot)


def spot_at(root: Any, path: Sequence[PathItem]) -> tuple[Spot | None, bool]:
    """The spot of the entry at `path`, or of its nearest ancestor; and whether it is the entry itself."""
    node, nearest = root, None
    for item in path:
        spot = _spot(node, item)
        if spot is None:
            return nearest, False
        node, nearest = node[item], spot
    return nearest, True


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


def plus_of_key(root: Any, path: Sequence[PathItem]) -> str:
    """`+` if the key at `path` is written with it, as in a release that adds to its parent; otherwise empty."""
    spot, exact = spot_at(root, path)
    if spot is None or not exact:
        return ""
    line = spot.source.text.split("\n", spot.key.line + 1)[spot.key.line]
    return "+" if line[spot.key.column :].lstrip("\"'").startswith("+") else ""


def place_at(root: Any, path: Sequence[PathItem], source: Source, *, of_key: bool = False) -> Place:
    """The position of the entry at `path`, of the key of its nearest ancestor, or of the start of the file."""
    spot, exact = spot_at(root, path)
    return place_of(spot, of_key=of_key or not exact) if spot else Place(source.name, 1, 1)


class Text(NamedTuple):
    """A text and its path; `name` is the nearest key above it."""

    path: Path
    name: str
    value: str


class DocumentTexts(NamedTuple):
    """The texts and the keys (with their values) below a node, in the order of the file."""

    texts: list[Text]
    keys: list[tuple[Path, str, Any]]


def document_texts(node: Any) -> DocumentTexts:
    """The texts and keys below `node`."""
    contents = DocumentTexts([], [])
    _collect(node, (), "", contents)
    return contents


def _collect(node: Any, path: Path, name: str, contents: DocumentTexts) -> None:
    """Append to `contents`. A generator per level would take three times as long."""
    if isinstance(node, dict):
        for key, value in node.items():
            below = (*path, key)
            contents.keys.append((below, key, value))
            if type(value) is str:
                contents.texts.append(Text(below, key, value))
            elif isinstance(value, (dict, list)):
                _collect(value, below, key, contents)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            if type(value) is str:
                contents.texts.append(Text((*path, index), name, value))
            elif isinstance(value, (dict, list)):
                _collect(value, (*path, index), name, contents)
    elif isinstance(node, str):
        contents.texts.append(Text(path, name, node))
