"""The engines that a recipe may name."""

from gb300serve.engines.base import Engine
from gb300serve.engines.sglang.engine import SGLANG
from gb300serve.engines.vllm.engine import VLLM

ENGINES: dict[str, Engine] = {each.name: each for each in (SGLANG, VLLM)}


def engine(name: str) -> Engine:
    """The engine of this name; KeyError for a name that no recipe passes validation with."""
    return ENGINES[name]
