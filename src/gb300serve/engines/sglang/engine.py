"""The engine `sglang`: its options checked against the tables and against what it refuses later."""

from collections.abc import Iterator

from gb300serve.core.values import Value
from gb300serve.engines.base import Options, Problem, number, si_length
from gb300serve.engines.check import check_least, check_port, meant_fraction, outside
from gb300serve.engines.options import texts
from gb300serve.engines.tables import TabledEngine

LEAST = {
    "dp_size": 1,
    "max_running_requests": 1,
    "pp_size": 1,
    "speculative_dflash_block_size": 1,
    "tp_size": 1,
}


def check_limits(options: Options) -> Iterator[Problem]:
    """Values that the parser takes and the configuration, or the first allocation, refuses."""
    yield from check_least(options, LEAST)
    yield from _check_share(options.get("mem_fraction_static"))
    yield from check_port(options.get("port"))
    longest = si_length(options.get("context_length"))
    if longest is not None and longest < 1:
        yield outside("context_length", options["context_length"], "at least 1")
    yield from _check_names(options.get("served_model_name"))


def _check_share(value: Value) -> Iterator[Problem]:
    """1 leaves nothing for activations and graphs."""
    share = number(value)
    if share is not None and not 0 < share < 1:
        yield outside("mem_fraction_static", value, "above 0 and below 1", meant_fraction(share))


def _check_names(value: Value) -> Iterator[Problem]:
    for name in texts(value):
        # Object storage: those names keep their colon.
        if ":" in name and "://" not in name:
            message = f"served_model_name is '{name}', and SGLang takes what follows a colon for an adapter"
            yield Problem(("served_model_name",), "OPT014", message, f"write {name.replace(':', '-')}")


SGLANG = TabledEngine("sglang", lambda options, _choice: check_limits(options))
