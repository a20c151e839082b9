"""`${models}`, `${cache}`, `${patches}` of the site and `${recipe.scalar.path}`, in the paths of a recipe."""

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pydantic import BaseModel

from gb300serve.core.errors import CompileError
from gb300serve.core.text import suggestion
from gb300serve.core.values import compact_json
from gb300serve.site.model import DIRECTORIES

_VARIABLE = re.compile(r"\$(\$\{)|\$\{([^}]*)\}|\$\{")

# Paths that hold variables themselves: `${model.path}` stands for the directory, not for the text of the recipe.
_EXPANDED = re.compile(r"model\.path|container\.secrets\.[^.]+\.file")

Recipe: TypeAlias = BaseModel | Mapping[str, object]
"""A recipe, as its model or as its nodes."""


class VariableError(CompileError):
    """The recipe names a variable that no site can give."""


class UnknownVariableError(VariableError):
    """Neither the site nor the recipe has it."""

    def __init__(self, name: str, text: str, known: tuple[str, ...]) -> None:
        meant = suggestion(name, known)
        listed = ", ".join(DIRECTORIES)
        hint = f"write ${{{meant}}}" if meant else f"a site gives {listed}; a recipe its own keys, as model.revision"
        super().__init__(f"`{text}`: there is no variable `{name}`", hint=hint)


class NotScalarError(VariableError):
    """A variable names a section or a list."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"`{text}`: `{name}` is not a single value", hint="name one text or number of the recipe")


class CircularVariableError(VariableError):
    """A variable stands for itself."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"`{text}`: `{name}` stands for itself", hint="write the path here")


class UnclosedVariableError(VariableError):
    """`${` without `}`."""

    def __init__(self, text: str) -> None:
        super().__init__(f"`{text}`: `${{` is not closed", hint="add }, or write $${ for a literal ${")


class UnsetVariableError(CompileError):
    """The site does not say it."""

    def __init__(self, name: str, text: str) -> None:
        hint = f"add `{name}: /a/directory` to site.yaml"
        super().__init__(f"`{text}`: the site does not say where `{name}` is", hint=hint)


def expand(text: str, site: Mapping[str, str], recipe: Recipe, within: tuple[str, ...] = ()) -> str:
    """`text` with its variables replaced; raises CompileError. `$${` is a literal `${`.

    `within` names the variables whose values are being expanded.
    """

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return "${"
        name = match[2]
        if name is None:
            raise UnclosedVariableError(text)
        if name in site:
            return site[name]
        if name in within:
            raise CircularVariableError(name, text)
        own = _own(name, text, recipe)
        return expand(own, site, recipe, (*within, name)) if _EXPANDED.fullmatch(name) else own

    return _VARIABLE.sub(value, text) if "$" in text else text


def _own(name: str, text: str, recipe: Recipe) -> str:
    if name in DIRECTORIES:
        raise UnsetVariableError(name, text)
    value: object = recipe
    for word in name.split("."):
        if isinstance(value, BaseModel) and word in type(value).model_fields:
            value = getattr(value, word)
        elif isinstance(value, Mapping) and word in value:
            value = value[word]
        else:
            raise UnknownVariableError(name, text, (*DIRECTORIES, *_scalars(recipe)))
    if not isinstance(value, (str, int, float)):
        raise NotScalarError(name, text)
    return value if isinstance(value, str) else compact_json(value)


def _scalars(node: object, path: str = "") -> Iterator[str]:
    """The paths of all single values below a mapping."""
    for key, value in node.items() if isinstance(node, Mapping) else ():
        if isinstance(value, Mapping):
            yield from _scalars(value, f"{path}{key}.")
        elif not isinstance(value, list):
            yield f"{path}{key}"
