"""The HTTP server of a simulated vLLM: its paths, statuses, bodies and metrics."""

from collections.abc import Iterator, Mapping
from typing import Any

from gb300serve.fit.model import MemoryPlan
from gb300serve.simulator.engine.http import METRICS_TYPE, EngineHandler
from gb300serve.simulator.engine.service import Counters, family_lines, histogram_lines, sample
from gb300serve.simulator.engine.settings import Settings
from gb300serve.simulator.engine.vllm.log import API


def _counter(name: str, text: str, value: float, labels: Mapping[str, str]) -> Iterator[str]:
    yield from family_lines(name, "counter", text)
    yield sample(name, value, labels)


def _speculation(counters: Counters, settings: Settings, labels: Mapping[str, str]) -> Iterator[str]:
    plan = settings.demand.speculation
    if plan is None:
        return
    prefix = "vllm:spec_decode_num"
    yield from _counter(f"{prefix}_drafts_total", "Number of spec decoding drafts.", counters.drafts, labels)
    yield from _counter(f"{prefix}_draft_tokens_total", "Number of draft tokens.", counters.draft_tokens, labels)
    accepted = sum(counters.accepted)
    yield from _counter(f"{prefix}_accepted_tokens_total", "Number of accepted tokens.", accepted, labels)
    name = f"{prefix}_accepted_tokens_per_pos_total"
    yield from family_lines(name, "counter", "Accepted tokens per draft position.")
    for position in range(plan.tokens):
        number = counters.accepted[position] if position < len(counters.accepted) else 0
        yield sample(name, number, {**labels, "position": str(position)})


def _cache(settings: Settings, memory: MemoryPlan) -> Iterator[str]:
    block = settings.checkpoint.kv_cache.block_tokens
    pool = memory.kv_cache_tokens or 0
    yield from family_lines("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig")
    labels = {
        "block_size": str(block),
        "cache_dtype": settings.demand.kv_cache_dtype,
        "engine": "0",
        "gpu_memory_utilization": f"{settings.demand.gpu_memory_utilization:g}",
        "kv_cache_max_concurrency": f"{memory.concurrency_at_max_len or 0:.2f}",
        "kv_cache_size_tokens": str(pool),
        "num_gpu_blocks": str(pool // block),
    }
    yield sample("vllm:cache_config_info", 1, labels)


def metrics(settings: Settings, memory: MemoryPlan, counters: Counters, started: float) -> str:
    """The whole text. `started` is the real start of the process in seconds since 1970; clients compare it."""
    labels = {"engine": "0", "model_name": settings.served_names[0]}
    lines = [
        *family_lines("process_start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds.")
    ]
    lines.append(sample("process_start_time_seconds", started, {}))
    used = (counters.running * 1000) / (memory.kv_cache_tokens or 1)
    gauges = {
        "num_requests_running": ("Number of requests in model execution batches.", counters.running),
        "num_requests_waiting": ("Number of requests waiting to be processed.", counters.waiting),
        "kv_cache_usage_perc": ("KV-cache usage. 1 means 100 percent usage.", min(1.0, used)),
    }
    for name, (text, value) in gauges.items():
        lines += [*family_lines(f"vllm:{name}", "gauge", text), sample(f"vllm:{name}", value, labels)]
    totals = {
        "prompt_tokens_total": ("Number of prefill tokens processed.", counters.prompt_tokens),
        "generation_tokens_total": ("Number of generation tokens processed.", counters.generation_tokens),
        "num_preemptions_total": ("Cumulative number of preemption from the engine.", 0),
        "prefix_cache_queries_total": ("Prefix cache queries, in tokens.", counters.prompt_tokens),
        "prefix_cache_hits_total": ("Prefix cache hits, in tokens.", 0),
    }
    for name, (text, value) in totals.items():
        lines += _counter(f"vllm:{name}", text, value, labels)
    lines += family_lines("vllm:request_success_total", "counter", "Count of successfully processed requests.")
    for reason, number in counters.finished.items():
        lines.append(sample("vllm:request_success_total", number, {**labels, "finished_reason": reason}))
    lines += _speculation(counters, settings, labels)
    lines += _cache(settings, memory)
    for name, seen in counters.histograms.items():
        lines += histogram_lines(f"vllm:{name}", seen, labels)
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
