"""Every text and every key below a node with its path: what rules about values, whatever they are of, walk over."""

from typing import Any, NamedTuple

from gb300serve.document.nodes import Path


class Text(NamedTuple):
    """A text and where it stands; `name` is the nearest key above it."""

    path: Path
    name: str
    value: str


class Words(NamedTuple):
    """What is written below a node, in the order of the file; `keys` have the values that stand under them."""

    texts: list[Text]
    keys: list[tuple[Path, str, Any]]


def words(node: Any) -> Words:
    """The texts and keys below `node`."""
    found = Words([], [])
    _walk(node, (), "", found)
    return found


def _walk(node: Any, path: Path, name: str, found: Words) -> None:
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
