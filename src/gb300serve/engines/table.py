"""The options of one engine version: what exists, what each takes, how each is said."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gb300serve.core.text import suggestion
from gb300serve.core.values import Value
from gb300serve.engines.check import check_value
from gb300serve.engines.forms import words
from gb300serve.engines.option import EngineOption, read_option
from gb300serve.engines.problem import Problem

# What the engines call differently, vLLM's name first.
TWINS = (
    ("block_size", "page_size"),
    ("cudagraph_capture_sizes", "cuda_graph_bs_decode"),
    ("gpu_memory_utilization", "mem_fraction_static"),
    ("max_cudagraph_capture_size", "cuda_graph_max_bs_decode"),
    ("max_model_len", "context_length"),
    ("max_num_batched_tokens", "chunked_prefill_size"),
    ("max_num_seqs", "max_running_requests"),
    ("model", "model_path"),
    ("tokenizer", "tokenizer_path"),
)


@dataclass(frozen=True, eq=False)  # a version has one table: itself is its identity
class OptionTable:
    """One shipped table. Options are read from their rows on demand: a recipe says twenty of three hundred."""

    engine: str
    version: str
    rows: Mapping[str, Mapping[str, Any]]
    tool_call_parsers: tuple[str, ...] = ()
    reasoning_parsers: tuple[str, ...] = ()
    refused: Mapping[str, str] | None = None
    """Options that this build is known to refuse, with what to do instead."""

    @cached_property
    def _read(self) -> dict[str, EngineOption]:
        return {}

    def find(self, key: str) -> EngineOption | None:
        """The option with this key of a recipe, or None."""
        row = self.rows.get(key)
        if row is None:
            return None
        option = self._read.get(key)
        if option is None:
            option = self._read[key] = read_option(key, row)
        return option

    def options(self) -> Iterator[EngineOption]:
        """Every option, in the order of the keys."""
        for key in sorted(self.rows):
            yield read_option(key, self.rows[key])

    @cached_property
    def _spelled(self) -> dict[str, str]:
        """Other spellings (dashes, aliases, off flags), without leading dashes and with underscores, to keys."""
        found = {}
        for option in self.options():
            for flag in (option.flag, *option.aliases, *option.off):
                found[flag.lstrip("-").replace("-", "_")] = option.key
        return found

    def rightly(self, key: str) -> str | None:
        """The key that a wrong one stands for: another spelling, the other engine's name, the closest one."""
        plain = key.lstrip("-").replace("-", "_")
        return self.same(plain) or self._begun(plain) or suggestion(plain, self.rows)

    def same(self, key: str) -> str | None:
        """The key that is said by another spelling, or by the other engine's name for it."""
        return self._spelled.get(key) or self._spelled.get(key.lower()) or self._twin(key)

    def _twin(self, key: str) -> str | None:
        names = (sglang if key == vllm else vllm for vllm, sglang in TWINS if key in (vllm, sglang))
        return next((name for name in names if name in self.rows), None)

    def _begun(self, key: str) -> str | None:
        """The only key that begins with the words of this one: the engine's parser would complete its flag."""
        begun = [name for name in self.rows if name.startswith(f"{key}_")]
        return begun[0] if len(begun) == 1 else None

    def check(self, key: str, value: Value) -> tuple[Problem, ...]:
        """Everything wrong with one option; no problem means that the engine's parser takes it."""
        option = self.find(key)
        return (self._unknown(key),) if option is None else tuple(check_value(option, value))

    def words(self, key: str, value: Value) -> tuple[str, ...]:
        """The words that say an option that passed the check."""
        option = self.find(key)
        if option is None:
            raise KeyError(key)
        return words(option, value)

    def _unknown(self, key: str) -> Problem:
        message = f"engine.options has no '{key}' in {self.engine} {self.version}"
        refused = (self.refused or {}).get(key)
        right = None if refused else self.rightly(key)
        return Problem((key,), "OPT001", message, refused or (f"write '{right}'" if right else None))
