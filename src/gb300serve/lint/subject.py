"""What a rule looks at: a valid recipe, what it is compiled with, and what is pinned beside it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gb300serve.engines.vllm.view import VllmOptions, view
from gb300serve.plan.compile import Compiler
from gb300serve.plan.model import Plan
from gb300serve.plan.words import with_secret_words
from gb300serve.recipe.load import Loaded
from gb300serve.recipe.model import ContainerSection, Recipe
from gb300serve.site.model import Site


@dataclass
class Subject:
    """`pinned` is the text of `<release>.command`, None where there is none; `reference` gives the site beside it."""

    loaded: Loaded
    recipe: Recipe
    reference: Callable[[], Site] = field(default=Site)
    pinned: str | None = None

    @property
    def container(self) -> ContainerSection:
        return self.recipe.container

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
