"""Writing recipes as YAML, and the JSON Schema of the format."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from gb300serve.core.errors import CommandLineError, MachineError
from gb300serve.core.files import write_atomically
from gb300serve.core.values import WrittenFloat
from gb300serve.document.read import is_plain_text
from gb300serve.recipe.load import NOT_INHERITED, LoadedRecipe
from gb300serve.recipe.merge import NEVER_INHERITED
from gb300serve.recipe.model import FORMAT, Recipe


class _RecipeDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the base class's signature
        """Write a value that occurs twice both times: recipes have no aliases."""
        return True

    def serialize(self, node: yaml.Node) -> None:
        """Write the document itself one key a line, however short its values are."""
        if isinstance(node, yaml.MappingNode):
            node = yaml.MappingNode(node.tag, node.value, flow_style=False)
        super().serialize(node)


def _text(dumper: _RecipeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if is_plain_text(value) else '"')


def _fraction(dumper: _RecipeDumper, value: WrittenFloat) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:float", value.text)


_RecipeDumper.add_representer(str, _text)
_RecipeDumper.add_representer(WrittenFloat, _fraction)
_RecipeDumper.add_multi_representer(dict, yaml.SafeDumper.represent_dict)
_RecipeDumper.add_multi_representer(list, yaml.SafeDumper.represent_list)


def to_yaml(value: Any) -> str:
    """YAML that `document.read.parse` reads as `value`."""
    return yaml.dump(
        value, Dumper=_RecipeDumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=120
    )


def with_entries(text: str, section: str, entries: Mapping[str, Any]) -> str:
    """A recipe's text with these entries in a section of the top level; all else keeps its layout and comments.

    An entry that is a list or a mapping is replaced whole. The caller checks that the text reads as intended.
    """
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    if not entries or not isinstance(root, yaml.MappingNode):
        return text
    keys = {key.value.removeprefix("+"): (key, value) for key, value in root.value}
    if section not in keys:
        return f"{text.rstrip(NEWLINE)}\n{section}:\n{_block(entries, 2)}"
    key, value = keys[section]
    if not isinstance(value, yaml.MappingNode) or value.flow_style or not value.value:
        own = yaml.load(text, Loader=yaml.CSafeLoader)[key.value] or {}
        block = _block({**own, **entries}, 2).rstrip(NEWLINE)
        return f"{text[: key.start_mark.index]}{key.value}:\n{block}{text[_line_end(text, value.end_mark.index) :]}"
    return _with_changed_entries(text, value, entries)


NEWLINE = "\n"


def _with_changed_entries(text: str, section: yaml.MappingNode, entries: Mapping[str, Any]) -> str:
    present = {key.value.removeprefix("+"): (key, value) for key, value in section.value}
    indent, last = section.start_mark.column, _line_end(text, _end(text, section))
    new_entries = {name: entry for name, entry in entries.items() if name not in present}
    edits = [(last, last, NEWLINE + _block(new_entries, indent).rstrip(NEWLINE))] if new_entries else []
    for name in entries.keys() - new_entries.keys():
        (key, value), entry = present[name], entries[name]
        if isinstance(value, yaml.ScalarNode) and not isinstance(entry, dict | list):
            edits.append((value.start_mark.index, value.end_mark.index, str(entry)))  # a comment after it stays
        else:
            start, end = key.start_mark.index - indent, _line_end(text, _end(text, value))
            edits.append((start, end, _block({name: entry}, indent).rstrip(NEWLINE)))
    for start, end, new in sorted(edits, reverse=True):  # from the end, so that the positions stay right
        text = text[:start] + new + text[end:]
    return text


def _end(text: str, node: yaml.Node) -> int:
    """Where the node's text ends. A block's own mark is behind the comments and empty lines that follow it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return len(text[: node.end_mark.index].rstrip())


def _line_end(text: str, index: int) -> int:
    end = text.find(NEWLINE, index)
    return len(text) if end < 0 else end


def _block(entries: Mapping[str, Any], indent: int) -> str:
    """One entry after the other, and each item of a list on a line of its own."""
    lines = []
    for key, value in entries.items():
        if isinstance(value, list) and value:
            lines += [f"{key}:", *(f"  - {_on_one_line(item)}" for item in value)]
        else:
            lines.append(f"{key}: {_on_one_line(value)}")
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


def _on_one_line(value: Any) -> str:
    options: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "width": math.inf}
    text: str = yaml.dump([value], Dumper=_RecipeDumper, default_flow_style=True, **options)
    return text.strip()[1:-1]


# The name of a lane or of a release.
NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def check_name(option: str, name: str) -> None:
    """Raises CommandLineError unless `name` can name a lane or a release."""
    if not NAME.fullmatch(name):
        raise CommandLineError(f"{option} {name}: use lower-case letters, digits, `.`, `-` and `_`")


def draft_of(loaded: LoadedRecipe, parent: Recipe, new: str, *, copy: bool) -> dict[str, Any]:
    """The beginning of the release `new` (`v22`, or `lane/v22`): a child of a release, or a copy of all its settings.

    Raises CommandLineError if the name is none, or names another lane for a child.
    """
    lane, slash, release = new.rpartition("/")
    lane = lane if slash else parent.lane
    for name in (lane, release):
        check_name("--as", name or new)
    if (lane, release) == (parent.lane, parent.release):
        raise CommandLineError(f"--as {new}: that is the release itself", hint="name a new release")
    if lane != parent.lane and not copy:
        hint = "a release can extend only releases of its own lane: add --copy"
        raise CommandLineError(f"--as {new}: {parent.ref} belongs to another lane", hint=hint)
    title = f"Draft from {parent.release}"
    head = {"format": FORMAT, "lane": lane, "release": release, "title": title, "status": "draft"}
    if not copy:
        return head | {"extends": parent.release}
    return head | {key: value for key, value in loaded.root.items() if key not in (*head, *NEVER_INHERITED)}


def recipe_schema() -> dict[str, Any]:
    """The schema for editors. It checks one file as written; `lint` checks the resolved recipe."""
    schema = Recipe.model_json_schema()
    sections = {key: value["$ref"].rpartition("/")[2] for key, value in schema["properties"].items() if "$ref" in value}
    required = {key: schema["$defs"][name].get("required") for key, name in sections.items()}
    nested = {key: {"required": keys} for key, keys in required.items() if keys}
    without_parent = {"required": schema["required"], "properties": nested}
    for section in (schema, *schema["$defs"].values()):
        section.pop("required", None)
        section["patternProperties"] = {r"^\+": {"type": ["object", "array"]}}
        # `null` removes the parent's value.
        properties = section.get("properties", {}).items()
        section["properties"] = {key: {"anyOf": [value, {"type": "null"}]} for key, value in properties}
    return schema | {"required": list(NOT_INHERITED), "if": {"not": {"required": ["extends"]}}, "then": without_parent}


SUFFIX = ".command"


class PinFileError(MachineError):
    """The file cannot be read or written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(
            f"{path}: {reason}", hint="pins are stored beside their recipes: check the permissions of the directory"
        )


def pin_path(recipe: Path) -> Path:
    """The path of a recipe's pin."""
    return recipe.with_suffix(SUFFIX)


def read_pin(recipe: Path) -> str | None:
    """The pinned command, None if there is none. Bytes that are not UTF-8 are replaced, so they match no command."""
    path = pin_path(recipe)
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PinFileError(path, error.strerror or str(error)) from error


def write_pin(recipe: Path, text: str) -> Path:
    """Write the pin atomically; returns its path."""
    path = pin_path(recipe)
    try:
        write_atomically(path, text.encode("utf-8"))
    except OSError as error:
        raise PinFileError(path, error.strerror or str(error)) from error
    return path
