"""Is the server that answers the one in our container?

Two engines on one port of the host both start without an error (vLLM's socket is bound early with SO_REUSEADDR and
listens only at the end of the boot, and the one that lost answers nothing; SGLang binds only at the end, and its own
first request may be answered by the other): an answer alone proves nothing.

vLLM's /metrics say when its process started. SGLang's say nothing of the kind, but it writes into its log what no
other start of it has: how long each part of it took, and the seed that it drew; /server_info tells the same figures.
"""

from collections.abc import Mapping
from typing import Any, Literal

from gb300serve.core.http import Http, UnreachableError
from gb300serve.probe.answers import UnexpectedAnswerError, json_object
from gb300serve.probe.endpoint import ServerEndpoint
from gb300serve.probe.metrics import Metrics

Identity = Literal["ours", "other", "unknown"]

# The engine is the container's first process and starts with it. The kernel gives process starts against its own
# boot time, which adjustments of the clock move by seconds; a wrapper before the engine may take its time.
EARLIER = 10.0
LATER = 60.0
# /server_info asks the scheduler, which may be in the middle of a long prefill.
TIMEOUT = 5.0
# Receipts of a boot's log whose figures only this start has, and the keys of those figures.
SEED = "random_seed"
TIMINGS = ("load_weight", "kv_cache_allocation", "scheduler_e2e", "tokenizer_e2e")
RECEIPTS = frozenset({"startup_timings"})
# The log gives hundredths of a second.
_ROUNDING = 0.0051


def identity(
    client: Http, endpoint: ServerEndpoint, measured: Metrics, started_at: float, told: Mapping[str, Any]
) -> Identity:
    """`started_at` is the container's start, seconds since 1970; `told` are figures of its log (RECEIPTS).

    `unknown` where the server tells neither its start nor such figures.
    """
    path = endpoint.engine.server_info
    if measured.process_start is not None or path is None or not told:
        return compare(measured.process_start, started_at)
    url = f"{endpoint.url}{path}"
    try:
        return same_start(json_object(url, client.get(url, TIMEOUT, endpoint.headers)), told)
    except (UnreachableError, UnexpectedAnswerError):
        return "unknown"


def compare(process_start: float | None, started_at: float) -> Identity:
    """Both in seconds since 1970."""
    if process_start is None:
        return "unknown"
    return "ours" if started_at - EARLIER <= process_start <= started_at + LATER else "other"


def same_start(info: Mapping[str, Any], told: Mapping[str, Any]) -> Identity:
    """The figures of /server_info against those of the log; the seed counts where it tells no times."""
    spent = info.get("startup_time")
    times = spent if isinstance(spent, dict) else {}
    pairs = [(times[name], told[name]) for name in TIMINGS if name in told and isinstance(times.get(name), float | int)]
    if pairs:
        return "ours" if all(abs(one - other) < _ROUNDING for one, other in pairs) else "other"
    seed = info.get(SEED)
    if SEED not in told or not isinstance(seed, int):
        return "unknown"
    return "ours" if seed == told[SEED] else "other"
