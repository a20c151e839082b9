"""The engines that a recipe may name."""

from gb300serve.engines.base import Engine
from gb300serve.engines.sglang.engine import Sglang
from gb300serve.engines.vllm.engine import Vllm

ENGINES: dict[str, Engine] = {"sglang": Sglang(), "vllm": Vllm()}


def engine(name: str) -> Engine:
    """The engine of this name; KeyError for a name that no recipe passes validation with."""
    return ENGINES[name]
