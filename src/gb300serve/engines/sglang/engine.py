"""The engine SGLang, 0.5.20 to 0.5.23."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gb300serve.core.values import Value
from gb300serve.engines.base import Options, Problem, number, si_length
from gb300serve.engines.check import check_least, check_port, meant_fraction, outside
from gb300serve.engines.engine import ArgumentEcho, Engine, EngineParser, EngineProbe, NodeArguments, ServerInfo
from gb300serve.engines.options import texts
from gb300serve.engines.tables import OptionTable

# Drawn at each start, and printed among the arguments: a line of 10 kB that also holds the server's key.
SEED = "random_seed"
_SEED = re.compile(r"\bserver_args=.*?\brandom_seed'?[:=] ?(\d{1,18})\b")
TIMINGS = ("load_weight", "kv_cache_allocation", "scheduler_e2e", "tokenizer_e2e")
RECEIPTS = frozenset({"startup_timings"})
# The log has hundredths of a second.
_ROUNDING = 0.0051


def seed_in(text: str) -> Mapping[str, int]:
    """The seed in a line of the log; empty for any other line."""
    match = _SEED.search(text) if "server_args=" in text else None
    return {SEED: int(match[1])} if match else {}


def is_same_start(info: Mapping[str, Any], figures: Mapping[str, Any]) -> bool | None:
    """Compare `/server_info` with the figures of a log: the timings, else the seed. None if neither is in both."""
    spent = info.get("startup_time")
    times = spent if isinstance(spent, dict) else {}
    names = [name for name in TIMINGS if name in figures and isinstance(times.get(name), float | int)]
    if names:
        return all(abs(times[name] - figures[name]) < _ROUNDING for name in names)
    seed = info.get(SEED)
    return seed == figures[SEED] if SEED in figures and isinstance(seed, int) else None


PORT = 30000
# Between the machines of one model.
NODE_PORT = 20000
LEAST = {"dp_size": 1, "max_running_requests": 1, "pp_size": 1, "speculative_dflash_block_size": 1, "tp_size": 1}


def check_limits(options: Options) -> Iterator[Problem]:
    """Values that the parser accepts and the configuration, or the first allocation, rejects."""
    yield from check_least(options, LEAST)
    yield from _check_share(options.get("mem_fraction_static"))
    yield from check_port(options.get("port"))
    longest = si_length(options.get("context_length"))
    if longest is not None and longest < 1:
        yield outside("context_length", options["context_length"], "at least 1")
    yield from _check_names(options.get("served_model_name"))


def _check_share(value: Value) -> Iterator[Problem]:
    """At 1, no memory is left for activations and graphs."""
    share = number(value)
    if share is not None and not 0 < share < 1:
        yield outside("mem_fraction_static", value, "above 0 and below 1", meant_fraction(share))


def _check_names(value: Value) -> Iterator[Problem]:
    for name in texts(value):
        # Names of object storage keep their colon.
        if ":" in name and "://" not in name:
            message = f"served_model_name is '{name}', but SGLang reserves the colon for adapters"
            yield Problem(("served_model_name",), "OPT014", message, f"write {name.replace(':', '-')}")


def name_model(argv: Sequence[str], _table: OptionTable) -> Sequence[str]:
    """`MODEL …` as `--model-path MODEL …`, as `sglang serve` does it; underscores and dots stay as they are."""
    return ("--model-path", *argv) if argv and not argv[0].startswith("-") else argv


def join_nodes(leader: str, _rank: str) -> tuple[str, ...]:
    """The arguments for one of several machines."""
    return ("--dist-init-addr", f"{leader}:{NODE_PORT}")


SGLANG = Engine(
    name="sglang",
    title="SGLang",
    meaning=lambda options, _choice: check_limits(options),
    model_key="model_path",
    default_port=PORT,
    default_host="127.0.0.1",  # sglang.srt.server_args.ServerArgs.host
    image="lmsysorg/sglang",
    launchers=(("sglang", "serve"), ("-m", "sglang.launch_server")),
    module="sglang.launch_server",
    parser=EngineParser(name_model, prog="sglang serve", root="sglang serve"),
    nodes=NodeArguments(("nnodes", "node_rank", "dist_init_addr"), join_nodes),
    # arg_groups/speculative_hook.py replaces the name of the algorithm.
    echo=ArgumentEcho("server_args=", is_complete=True, replaced={("speculative_algorithm", "NEXTN"): "EAGLE"}),
    # observability/metrics_collector.py: a multiprocess registry, without the start of a process;
    # entrypoints/http_server.py: /health generates a token, and waits at most 20 s for it.
    probe=EngineProbe(
        requests_running="sglang:num_running_reqs",
        requests_waiting="sglang:num_queue_reqs",
        kv_cache_usage="sglang:token_usage",
        generation_tokens="sglang:generation_tokens_total",
        health_timeout=25.0,
        server_info=ServerInfo("/server_info", RECEIPTS, seed_in, is_same_start),
    ),
    own_flags=frozenset(("--model-path", "--mem-fraction-static", "--context-length", "--max-running-requests")),
    image_words=frozenset({"sgl"}),
)
