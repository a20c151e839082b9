"""Validate nodes against a typed model: every error has its position and a hint what to write instead."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from gb300serve.core.diagnostics import Diagnostic, diagnostic, dotted_path
from gb300serve.core.text import parse_digits, suggestion
from gb300serve.document.nodes import ListNode, MapNode, Path, Source, place_at, plus_of_key
from gb300serve.document.read import is_plain_text

M = TypeVar("M", bound=BaseModel)

_KIND = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "dataclass_type": "a mapping",
}
# Every word of these is an item of its own.
_ARGUMENTS = ("launcher", "extra_args")
_RESTART = ('"no"', "unless-stopped")
_SIZES = (("container", "memory"), ("container", "shm_size"))
# A wrong value here is likely to be the secret itself, so messages never repeat it.
PRIVATE = ("container", "secrets")

_PATTERN_MEANING = {
    r"^sha256:[0-9a-f]{64}$": "`sha256:` and 64 hexadecimal digits",
    r"^(?:unix|tcp|ssh|https?|fd)://.": "an address as in DOCKER_HOST (`unix:///…`, `ssh://…`, `tcp://…`)",
    r"^/": "an absolute path (`/…`) without `~` and variables",
    r"^[^\s/]+$": "a host name or an address without scheme and port",
    r"^[/~]": "an absolute path (`/…`), or a path in the home directory (`~/…`)",
    r"^[0-9a-f]{64}$": "64 hexadecimal digits",
    r"^[a-z0-9][a-z0-9._-]*$": "lower-case letters, digits, `.`, `-` and `_`, starting with a letter or digit",
    r"^[a-zA-Z0-9][a-zA-Z0-9_.-]+$": "at least two letters, digits, `.`, `-` and `_`, starting with a letter or digit",
    r"^[A-Za-z_][A-Za-z0-9_]*$": "the name of a variable: letters, digits and underscores",
    r"^[a-zA-Z0-9][a-zA-Z0-9_.-]*$": "letters, digits, `.`, `-` and `_`, starting with a letter or digit",
    r"^(?:[0-9]+(?:\.[0-9]+)?(?:h|ms|us|ns|m|s))+$": "a duration such as 30s or 1m30s",
    r"^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$": "numbers of layers such as 3-60 or 0,4-7",
    r"^(?:no|always|unless-stopped|on-failure(?::[0-9]+)?)$": '"no", always, unless-stopped or on-failure[:N]',
}


def validate(model: type[M], file_format: str, root: Any, source: Source) -> tuple[M | None, tuple[Diagnostic, ...]]:
    """The model of the nodes, or the reasons why they are invalid: one diagnostic per position.

    `file_format` is the format that the file must state; `source` is the file in which a missing key is reported.
    """
    if not isinstance(root, MapNode):
        message = "the file must be a mapping of keys to values"
        return None, (diagnostic("FMT002", message, None, (source.name, 1, 1)),)
    if (problem := format_problem(file_format, root, source)) is not None:
        return None, (problem,)
    try:
        return model.model_validate(root), ()
    except ValidationError as error:
        items = error.errors(include_url=False, include_input=False)
        problems = (_diagnostic(model, root, source, item) for item in items if not _is_other_branch(root, item))
        return None, tuple(first_per_position(problems))


def first_per_position(problems: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """The first problem of each position; later ones usually follow from it."""
    seen = set()
    for problem in problems:
        if problem.position not in seen or problem.code == "FMT003":
            seen.add(problem.position)
            yield problem


def _is_other_branch(root: MapNode, item: Any) -> bool:
    """If a scalar and a mapping are allowed, an error in a mapping concerns its keys, not its type."""
    path = _existing(root, item["loc"])
    is_branch = len(path) < len(item["loc"])
    return is_branch and item["type"] in {"int_type", "string_type"} and isinstance(_value_at(root, path), MapNode)


def format_problem(wanted: str, root: MapNode, source: Source) -> Diagnostic | None:
    """Check the format that the file states."""
    written = root.get("format")
    if written == wanted:
        return None
    place = place_at(root, ("format",), source)
    kind, _, ours = wanted.partition("/")
    name, _, version = written.partition("/") if isinstance(written, str) else ("", "", "")
    if name == kind and (parse_digits(version) or 0) > int(ours):
        message = f"format {written} requires gb300serve {version}.0 or newer; this version reads {wanted}"
        return diagnostic("FMT006", message, "pipx upgrade gb300serve", place, "format")
    message = (
        "the file does not state its format"
        if written is None
        else f"the format must be {wanted}, not {_written(written)}"
    )
    return diagnostic("FMT005", message, f"write `format: {wanted}`", place, "format")


def _diagnostic(model: type[BaseModel], root: MapNode, source: Source, item: Any) -> Diagnostic:
    path = _existing(root, item["loc"])
    kind: str = item["type"]
    if kind == "extra_forbidden":
        return _unknown_key(model, root, source, path)
    if kind == "missing":
        return _missing_key(root, source, (*_existing(root, item["loc"][:-1]), item["loc"][-1]))
    if "[key]" in item["loc"]:
        return _bad_key(root, source, path, item)
    place, dotted = place_at(root, path, source), dotted_path(path)
    value = _value_at(root, path)
    is_private = path[: len(PRIVATE)] == PRIVATE
    written = "the value" if is_private else _written(value)
    if kind in _KIND:
        actual = (
            _type_of(value)
            if is_private or isinstance(value, (dict, list, type(None)))
            else f"{written} ({_type_of(value)})"
        )
        message = f"{dotted} must be {_KIND[kind]}, not {actual}"
        meant = _meant(kind, value, path) if not is_private else None
        quotes = _quotes(value, meant) if meant else ""
        hint = f"write {meant}{quotes}" if meant else _type_hint(kind, _fields_at(model, path))
        is_same = meant is not None and not isinstance(value, bool) and meant.strip('"') == str(value)
        return diagnostic("FMT002", message, hint, place, dotted, fix=meant if is_same else None)
    message = f"{dotted}: {written} is not allowed"
    return diagnostic("FMT004", message, _value_hint(item, written), place, dotted)


def _bad_key(root: MapNode, source: Source, path: Path, item: Any) -> Diagnostic:
    message = f"{dotted_path(path[:-1])}: the key `{path[-1]}` is not allowed"
    hint = _value_hint(item, str(path[-1]))
    return diagnostic("FMT004", message, hint, place_at(root, path, source, of_key=True), dotted_path(path))


def _unknown_key(model: type[BaseModel], root: MapNode, source: Source, path: Path) -> Diagnostic:
    key = str(path[-1])
    known = _fields_at(model, path[:-1])
    elsewhere = place_of_key(model, key)
    meant = None if elsewhere else suggestion(key, known)
    meant = plus_of_key(root, path) + meant if meant else None
    hint = elsewhere or (f"write `{meant}`" if meant else "valid keys: " + ", ".join(known))
    message = f"{dotted_path(path[:-1]) or 'the file'} has no key `{key}`"
    place = place_at(root, path, source, of_key=True)
    return diagnostic("FMT001", message, hint, place, dotted_path(path), fix=meant)


def _missing_key(root: MapNode, source: Source, path: Path) -> Diagnostic:
    message = f"`{path[-1]}` is missing" + (f" in {dotted_path(path[:-1])}" if len(path) > 1 else "")
    return diagnostic("FMT003", message, f"add `{path[-1]}:`", place_at(root, path, source), dotted_path(path))


def _existing(root: Any, location: Any) -> Path:
    """The part of pydantic's location that exists in the file; pydantic adds the branches of unions."""
    path: list[str | int] = []
    node = root
    for item in location:
        if item == "[key]":
            break
        if _has(node, item):
            node = node[item]
            path.append(item)
    return tuple(path)


def _has(node: Any, item: Any) -> bool:
    if isinstance(node, list):
        return isinstance(item, int) and item < len(node)
    return isinstance(node, MapNode) and item in node


def _value_at(node: Any, path: Path) -> Any:
    for item in path:
        node = node[item]
    return node


def _written(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return _type_of(value)
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{text}`" if len(text) <= 100 else f"`{text[:97]}…`"


def _type_of(value: Any) -> str:
    types = {bool: "a boolean", str: "text", type(None): "null", MapNode: "a mapping", ListNode: "a list"}
    return types.get(type(value), "a number")


def _type_hint(kind: str, fields: list[str]) -> str | None:
    """`fields` are the keys of the expected mapping, or of the mappings in the expected list."""
    keys = ", ".join(fields)
    if _KIND[kind] == "a mapping":
        return f"write its keys below it: {keys}" if keys else "write `key: value` lines below it"
    if kind == "list_type" and keys:
        return f"write a list of mappings with the keys {keys}"
    return "write true or false, without quotes" if kind == "bool_type" else None


def _meant(kind: str, value: Any, path: Path) -> str | None:
    """What to write instead of a scalar of the wrong type, if that is clear."""
    if isinstance(value, (dict, list, type(None))):
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if kind == "string_type":
        return _meant_text(text, path) if path != ("container", "restart") else _RESTART[text in ("true", "1")]
    if kind == "list_type" and path[:2] != ("container", "mounts"):
        words = text.split() if path[-1] in _ARGUMENTS else [_meant_port(text) if path[-1] == "ports" else text]
        return f"[{', '.join(map(_item, words))}]"
    if kind in ("int_type", "int_from_float", "float_type", "float_parsing"):
        number = re.fullmatch(r"(-?\d+(?:\.\d+)?) ?(?:s|sec|seconds)?", text)
        is_whole = number is not None and "." not in number[1]
        return number[1] if number and (is_whole or kind.startswith("float")) else None
    return None


def _quotes(value: Any, meant: str) -> str:
    if meant.startswith('"'):
        return " (quoted)"
    return " (without quotes)" if isinstance(value, str) and not meant.startswith("[") else ""


def _meant_text(text: str, path: Path) -> str:
    if path == ("engine", "version") and re.fullmatch(r"\d+\.\d+", text):
        return f"{text}.0"
    if path in _SIZES and text.isdecimal() and len(text) < 6:  # nobody means bytes
        return f"{text}g"
    return f'"{_meant_port(text)}"' if path[:2] == ("container", "ports") else f'"{text}"'


def _meant_port(text: str) -> str:
    return f"{text}:{text}" if text.isdecimal() else text


def _item(word: str) -> str:
    """A text as an item of a list in brackets; quotes keep YAML from reading it as something else."""
    is_plain = re.fullmatch(r"[A-Za-z_/-][\w./=@-]*", word) is not None and is_plain_text(word)
    return word if is_plain else json.dumps(word, ensure_ascii=False)


def _value_hint(item: Any, written: str) -> str:
    context = item.get("ctx") or {}
    if item["type"] == "string_pattern_mismatch":
        meaning = _PATTERN_MEANING[context["pattern"]]
        counted = f" ({len(written.strip('`').removeprefix('sha256:'))} given)" if "64" in meaning else ""
        return f"write {meaning}{counted}"
    if item["type"] == "literal_error":
        return f"write {context['expected'].replace(chr(39), '')}"
    if item["type"] == "value_error":
        return str(context["error"])
    message: str = item["msg"]
    return re.sub(r"^\w+ should", "it must", message)


def _fields_at(model: type[BaseModel], path: Path) -> list[str]:
    current: Any = model
    for item in path:
        if isinstance(item, int):
            continue
        fields = getattr(current, "model_fields", None)
        if fields and item in fields:
            current = _model_in(fields[item].annotation)
    return list(getattr(current, "model_fields", ()))


def place_of_key(model: type[BaseModel], key: str) -> str | None:
    """The hint where in the file a key belongs that stands elsewhere; None if the format does not define it."""
    fields = _fields_at(model, ())
    if key in fields:
        return f"`{key}` belongs at the top level of the file"
    sections = [f"`{name}`" for name in fields if key in _section(model, name)]
    return f"`{key}` belongs below {' or '.join(sections)}" if sections else None


def _section(model: type[BaseModel], name: str) -> Iterable[str]:
    """The keys of a section of the file; none if it is a list or has names of its own."""
    annotation: Any = model.model_fields[name].annotation
    branches = (annotation, *(() if get_origin(annotation) in (list, dict) else get_args(annotation)))
    return next((b.model_fields for b in branches if isinstance(b, type) and issubclass(b, BaseModel)), ())


def _model_in(annotation: Any) -> Any:
    """The model in `X | None`, `list[X]` or `dict[str, X]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in get_args(annotation):
        if (model := _model_in(argument)) is not None:
            return model
    return None
