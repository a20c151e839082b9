"""What a rule looks at: a valid recipe, what it is compiled with, and what is pinned beside it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gb300serve.document.nodes import Path
from gb300serve.document.texts import Text, Words, words
from gb300serve.engines.base import Options
from gb300serve.engines.shipped import TableChoice, tables_for
from gb300serve.engines.vllm.view import VllmOptions, view
from gb300serve.fit.catalog import checkpoint, checkpoint_at
from gb300serve.fit.checkpoint import Checkpoint
from gb300serve.lint.fitting import Fitting, fitting
from gb300serve.plan.compile import Compiler
from gb300serve.plan.model import Plan
from gb300serve.plan.secrets import Literal, literal_secrets
from gb300serve.plan.words import with_secret_words
from gb300serve.recipe.load import Loaded
from gb300serve.recipe.model import PLAN_SECTIONS, ContainerSection, Recipe
from gb300serve.site.model import Site

OPTIONS = ("engine", "options")
# Paths end at 4,096 bytes; patterns would take minutes for a megabyte of braces.
LONGEST = 8192
_TEMPLATES = frozenset({"chat_template", "response_role", "log_format"})


@dataclass
class LintSubject:
    """`pinned` is the text of `<release>.command`, None where there is none; `reference` gives the site beside it."""

    loaded: Loaded
    recipe: Recipe
    reference: Callable[[], Site] = field(default=Site)
    pinned: str | None = None

    @property
    def container(self) -> ContainerSection:
        return self.recipe.container

    @property
    def version(self) -> str | None:
        """The engine's."""
        return self.recipe.engine.version

    @cached_property
    def options(self) -> dict[str, Any]:
        """`engine.options`, with `${secret:NAME}` for secrets."""
        return with_secret_words(self.recipe.engine.options)

    @cached_property
    def vllm(self) -> VllmOptions | None:
        """The options that vLLM's rules speak of; None for another engine."""
        return view(self.options) if self.recipe.engine.name == "vllm" else None

    @cached_property
    def plan(self) -> Plan:
        """Compiled for the reference site; raises CompileError."""
        return Compiler(self.reference()).plan(self.recipe)

    @cached_property
    def words(self) -> Words:
        """Every text and key of the resolved recipe."""
        return words(self.loaded.root)

    @cached_property
    def literals(self) -> tuple[Literal, ...]:
        """The literal secrets of the resolved recipe."""
        return tuple(literal_secrets(self.loaded.root, self.words))

    @cached_property
    def plain_texts(self) -> list[Text]:
        """The texts that reach the container or the engine, but for templates by nature and for whole books."""
        return [text for text in self.words.texts if text.path[0] in PLAN_SECTIONS and _is_plain(text)]

    @cached_property
    def joined(self) -> str:
        """Those texts as one, each between two NULs: what does not occur in it need not be looked for one by one."""
        return "\0" + "\0".join([text.value for text in self.plain_texts]) + "\0"

    @cached_property
    def checkpoint(self) -> Checkpoint | None:
        """What the package knows of the first model: by its repository, else by where it lies or what it is called."""
        model = self.recipe.model
        if model is not None and model.repo:
            return checkpoint(model.repo)
        if model is not None and model.path:
            return checkpoint_at(model.path)
        return checkpoint(self.vllm.model) if self.vllm and self.vllm.model else None

    @cached_property
    def fitting(self) -> Fitting | None:
        """The memory plan, where everything that it needs is known."""
        if self.vllm is None:
            return None
        return fitting(self.checkpoint, self.repo, self.options, self.vllm, self.recipe)

    @cached_property
    def tables(self) -> TableChoice:
        """The option tables that speak for the engine version."""
        return tables_for(self.recipe.engine.name, self.version)

    @property
    def repo(self) -> str:
        """The first model's repository or, failing that, the directory it lies in; empty where neither is known."""
        model = self.recipe.model
        if model is None:
            return ""
        return model.repo or (model.path or "").rpartition("/")[2]


def option_path(*keys: str | int) -> Path:
    """`engine.options` and below."""
    return (*OPTIONS, *keys)


def option_given(options: Options, *keys: str) -> bool:
    """Whether one of the options is there with a value."""
    return any(options.get(key) is not None for key in keys)


def _is_plain(text: Text) -> bool:
    path, _, value = text
    if len(value) > LONGEST:
        return False
    return path[1] != "log" and (path[1] != "options" or path[2] not in _TEMPLATES)
