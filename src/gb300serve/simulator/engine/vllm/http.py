"""The HTTP server of a simulated vLLM: its paths, statuses, bodies and metrics."""

from collections.abc import Iterator, Mapping
from typing import Any

from gb300serve.fit.memory import MemoryPlan
from gb300serve.simulator.engine.http import METRICS_TYPE, EngineHandler
from gb300serve.simulator.engine.service import Counters, family_lines, histogram_lines, sample, scalar_lines
from gb300serve.simulator.engine.settings import Settings
from gb300serve.simulator.engine.vllm.settings import API


def _speculation(counters: Counters, settings: Settings, labels: Mapping[str, str]) -> Iterator[str]:
    if (plan := settings.memory_request.speculation) is None:
        return
    totals = {
        "drafts_total": ("Number of spec decoding drafts.", counters.drafts),
        "draft_tokens_total": ("Number of draft tokens.", counters.draft_tokens),
        "accepted_tokens_total": ("Number of accepted tokens.", sum(counters.accepted)),
    }
    yield from scalar_lines("vllm:spec_decode_num_", "counter", totals, labels)
    name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    yield from family_lines(name, "counter", "Accepted tokens per draft position.")
    for position in range(plan.tokens):
        number = counters.accepted[position] if position < len(counters.accepted) else 0
        yield sample(name, number, {**labels, "position": str(position)})


def _cache(settings: Settings, memory: MemoryPlan) -> Iterator[str]:
    block = settings.checkpoint.kv_cache.block_tokens
    pool = memory.kv_cache_tokens or 0
    labels = {
        "block_size": str(block),
        "cache_dtype": settings.memory_request.kv_cache_dtype,
        "engine": "0",
        "gpu_memory_utilization": f"{settings.memory_request.gpu_memory_utilization:g}",
        "kv_cache_max_concurrency": f"{memory.concurrency_at_max_len or 0:.2f}",
        "kv_cache_size_tokens": str(pool),
        "num_gpu_blocks": str(pool // block),
    }
    text = "Information of the LLMEngine CacheConfig"
    yield from scalar_lines("vllm:", "gauge", {"cache_config_info": (text, 1)}, labels)


def metrics(settings: Settings, memory: MemoryPlan, counters: Counters, started: float) -> str:
    """The whole text. `started` is the real start of the process in seconds since 1970; clients compare it."""
    labels = {"engine": "0", "model_name": settings.served_names[0]}
    start = {"process_start_time_seconds": ("Start time of the process since unix epoch in seconds.", started)}
    used = (counters.running * 1000) / (memory.kv_cache_tokens or 1)
    gauges = {
        "num_requests_running": ("Number of requests in model execution batches.", counters.running),
        "num_requests_waiting": ("Number of requests waiting to be processed.", counters.waiting),
        "kv_cache_usage_perc": ("KV-cache usage. 1 means 100 percent usage.", min(1.0, used)),
    }
    lines = [*scalar_lines("", "gauge", start, {}), *scalar_lines("vllm:", "gauge", gauges, labels)]
    totals = {
        "prompt_tokens_total": ("Number of prefill tokens processed.", counters.prompt_tokens),
        "generation_tokens_total": ("Number of generation tokens processed.", counters.generation_tokens),
        "num_preemptions_total": ("Cumulative number of preemption from the engine.", 0),
        "prefix_cache_queries_total": ("Prefix cache queries, in tokens.", counters.prompt_tokens),
        "prefix_cache_hits_total": ("Prefix cache hits, in tokens.", 0),
    }
    lines += scalar_lines("vllm:", "counter", totals, labels)
    lines += family_lines("vllm:request_success_total", "counter", "Count of successfully processed requests.")
    for reason, number in counters.finished.items():
        lines.append(sample("vllm:request_success_total", number, {**labels, "finished_reason": reason}))
    lines += _speculation(counters, settings, labels)
    lines += _cache(settings, memory)
    for name, histogram in counters.histograms.items():
        lines += histogram_lines(f"vllm:{name}", histogram, labels)
    return "\n".join(lines) + "\n"


class VllmHandler(EngineHandler):
    """One connection to vLLM."""

    thought_key = "reasoning"
    checks_model = True

    def access_line(self, peer: str, status: str) -> str:
        return f'({API}) INFO:     {peer} - "{self.command} {self.path} HTTP/1.1" {status}'

    def requires_key(self, path: str) -> bool:
        return path.startswith("/v1/")

    def route(self, path: str, sent: bytes) -> None:
        service, get = self.server.service, self.command == "GET"
        if path == "/ping" or (path == "/health" and get):
            self.send(200, b"", "application/json")
        elif path == "/version" and get:
            self.json(200, {"version": service.settings.environment.version})
        elif path == "/metrics" and get:
            with service.lock:
                text = metrics(service.settings, service.memory, service.counters, service.started)
            self.send(200, text.encode(), METRICS_TYPE)
        else:
            super().route(path, sent)

    def model_card(self, name: str, created: int) -> dict[str, Any]:
        root = self.server.service.settings.model
        return super().model_card(name, created) | {"owned_by": "vllm", "root": root, "permission": []}
