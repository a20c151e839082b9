"""`${models}`, `${cache}`, `${patches}` of the site and `${recipe.scalar.path}`, in the paths of a recipe."""

import re
from collections.abc import Mapping

from pydantic import BaseModel

from gb300serve.core.errors import CompileError
from gb300serve.core.text import suggestion
from gb300serve.site.model import DIRECTORIES

_VARIABLE = re.compile(r"\$(\$\{)|\$\{([^}]*)\}")


class UnknownVariableError(CompileError):
    """Neither the site nor the recipe has it."""

    def __init__(self, name: str, text: str) -> None:
        meant = suggestion(name, DIRECTORIES)
        hint = f"write ${{{meant}}}" if meant else f"a site gives {', '.join(DIRECTORIES)}; a recipe its own keys, as model.revision"
        super().__init__(f"`{text}`: there is no variable `{name}`", hint=hint)


class UnsetVariableError(CompileError):
    """The site does not say it."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"`{text}`: the site does not say where `{name}` is", hint=f"add `{name}: /a/directory` to site.yaml")


class NotScalarError(CompileError):
    """A variable names a section or a list."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"`{text}`: `{name}` is not a single value", hint="name one text or number of the recipe")


def expand(text: str, site: Mapping[str, str], recipe: BaseModel) -> str:
    """`text` with its variables replaced; raises CompileError. `$${` is a literal `${`."""

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return "${"
        name = match[2]
        return site[name] if name in site else _own(name, text, recipe)

    return _VARIABLE.sub(value, text) if "$" in text else text


def _own(name: str, text: str, recipe: BaseModel) -> str:
    if name in DIRECTORIES:
        raise UnsetVariableError(name, text)
    value: object = recipe
    for word in name.split("."):
        if isinstance(value, BaseModel) and word in type(value).model_fields:
            value = getattr(value, word)
        elif isinstance(value, Mapping) and word in value:
            value = value[word]
        else:
            raise UnknownVariableError(name, text)
    if value is None or isinstance(value, (BaseModel, Mapping, list)):
        raise NotScalarError(name, text)
    return str(value)
