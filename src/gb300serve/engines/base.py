"""What the rest of the program asks of an engine."""

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from gb300serve.core.values import Value
from gb300serve.engines.problem import Problem

Options: TypeAlias = Mapping[str, Value]
"""`engine.options` of a resolved recipe. A secret's value is the text `${secret:NAME}`."""


class Engine(Protocol):
    """One engine. Everything is pure; `version` is the recipe's `engine.version`, None when it names none."""

    @property
    def name(self) -> str: ...

    def check(self, options: Options, version: str | None) -> tuple[Problem, ...]:
        """Everything wrong with the options, in their order; notes stand last."""
        ...

    def argv(self, options: Options, version: str | None) -> tuple[str, ...]:
        """The engine's words: the positional model first and bare, then the options in their order.

        Options that no table knows are said by the common form (`--key value`), so that a plan of a recipe that does
        not pass the check can still be shown.
        """
        ...

    def open_list(self, options: Options, version: str | None) -> str | None:
        """The key of the last option when it would swallow bare words printed after it, else None."""
        ...

    def served_names(self, options: Options) -> tuple[str, ...]:
        """The names that `/v1/models` will list; the model's path when none is given, empty without a model."""
        ...

    def model_path(self, options: Options) -> str | None:
        """The model as the engine is told it: a path in the container or a repository."""
        ...

    def port(self, options: Options) -> int:
        """The port that the engine listens on, in the container."""
        ...
