"""One start of SGLang: the figures by which its log and its server are known to belong together."""

import re
from collections.abc import Mapping
from typing import Any

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
