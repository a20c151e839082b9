"""Every text below a node with its path: what rules about values, whatever they are of, walk over."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from gb300serve.document.nodes import Path


class Text(NamedTuple):
    """A text and where it stands; `name` is the nearest key above it."""

    path: Path
    name: str
    value: str


def texts(node: Any, path: Path = (), name: str = "") -> Iterator[Text]:
    """The texts below `node`, in the order of the file."""
    if isinstance(node, str):
        yield Text(path, name, node)
    elif isinstance(node, Mapping):
        for key, value in node.items():
            yield from texts(value, (*path, key), key)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from texts(value, (*path, index), name)


def numbers(node: Any, path: Path = (), name: str = "") -> Iterator[Text]:
    """The numbers below `node`, as text."""
    if isinstance(node, (int, float)) and not isinstance(node, bool):
        yield Text(path, name, str(node))
    elif isinstance(node, Mapping):
        for key, value in node.items():
            yield from numbers(value, (*path, key), key)
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from numbers(value, (*path, index), name)
