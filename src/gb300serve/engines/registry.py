"""The engines that a recipe may name."""

from collections.abc import Iterable

from gb300serve.engines.engine import Engine
from gb300serve.engines.sglang.engine import SGLANG
from gb300serve.engines.vllm.engine import VLLM

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (SGLANG, VLLM)}


def engine(name: str) -> Engine:
    """The engine with this name; KeyError for a name that is not valid in a recipe."""
    return ENGINES[name]


def engine_in(words: Iterable[str]) -> Engine | None:
    """The engine whose name is in one of the words: those of an image, a program, a module."""
    text = " ".join(words).lower()
    return next((engine for engine in ENGINES.values() if engine.name in text), None)
