"""The Prometheus text of SGLang: a multiprocess registry, which tells nothing of the process itself."""

from gb300serve.fit.model import MemoryPlan
from gb300serve.simulator.engine_metrics import Counters, family, histogram, sample
from gb300serve.simulator.engine_settings import Settings

_HISTOGRAMS = (
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "request_time_per_output_token_seconds",
    "e2e_request_latency_seconds",
)


def metrics(settings: Settings, memory: MemoryPlan, counters: Counters) -> str:
    """The whole text, as 0.5.20 to 0.5.23 name the series."""
    labels = {"engine_type": "unified", "model_name": settings.served_names[0], "pp_rank": "0", "tp_rank": "0"}
    pool = memory.kv_cache_tokens or 1
    decode = settings.checkpoint.decode
    gauges = {
        "num_running_reqs": ("The number of running requests.", counters.running),
        "num_queue_reqs": ("The number of requests in the waiting queue.", counters.waiting),
        "token_usage": ("The token usage.", min(1.0, counters.running * 1000 / pool)),
        "num_used_tokens": ("The number of used tokens.", counters.running * 1000),
        "gen_throughput": ("The generation throughput (token/s).", counters.running and decode.tokens_per_second),
        "max_total_num_tokens": ("Maximum total number of tokens in the KV cache pool.", memory.kv_cache_tokens or 0),
    }
    lines: list[str] = []
    for name, (text, value) in gauges.items():
        lines += [*family(f"sglang:{name}", "gauge", text), sample(f"sglang:{name}", value, labels)]
    totals = {
        "prompt_tokens_total": ("Number of prefill tokens processed.", counters.prompt_tokens),
        "generation_tokens_total": ("Number of generation tokens processed.", counters.generation_tokens),
        "num_requests_total": ("Number of requests processed.", sum(counters.finished.values())),
    }
    for name, (text, total) in totals.items():
        lines += [*family(f"sglang:{name}", "counter", text), sample(f"sglang:{name}", total, labels)]
    for name in _HISTOGRAMS:
        lines += histogram(f"sglang:{name}", counters.histograms[name], labels)
    return "\n".join(lines) + "\n"
