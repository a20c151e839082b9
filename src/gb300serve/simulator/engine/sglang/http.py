"""The HTTP server of a simulated SGLang: its paths, statuses and bodies (entrypoints/http_server.py, 0.5.23)."""

from typing import Any

from gb300serve.fit.model import MemoryPlan
from gb300serve.simulator.engine.http import METRICS_TYPE, EngineHandler
from gb300serve.simulator.engine.service import Counters, family_lines, histogram_lines, sample
from gb300serve.simulator.engine.settings import Settings
from gb300serve.simulator.engine.sglang.boot import random_seed, startup_times
from gb300serve.simulator.engine.sglang.log import format_stamp

_HISTOGRAMS = (
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "request_time_per_output_token_seconds",
    "e2e_request_latency_seconds",
)


def metrics(settings: Settings, memory: MemoryPlan, counters: Counters) -> str:
    """The whole text, with the metric names of 0.5.20 to 0.5.23."""
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
        lines += [*family_lines(f"sglang:{name}", "gauge", text), sample(f"sglang:{name}", value, labels)]
    totals = {
        "prompt_tokens_total": ("Number of prefill tokens processed.", counters.prompt_tokens),
        "generation_tokens_total": ("Number of generation tokens processed.", counters.generation_tokens),
        "num_requests_total": ("Number of requests processed.", sum(counters.finished.values())),
    }
    for name, (text, total) in totals.items():
        lines += [*family_lines(f"sglang:{name}", "counter", text), sample(f"sglang:{name}", total, labels)]
    for name in _HISTOGRAMS:
        lines += histogram_lines(f"sglang:{name}", counters.histograms[name], labels)
    return "\n".join(lines) + "\n"


# utils/auth.py: every other path requires the key.
_OPEN = ("/health", "/ready", "/metrics")
# /health waits this long for a token (virtual seconds).
_HEALTH_SECONDS = 1.0


class SglangHandler(EngineHandler):
    """One connection to SGLang."""

    thought_key = "reasoning_content"
    checks_model = False

    def access_line(self, peer: str, status: str) -> str:
        line = f'INFO:     {peer} - "{self.command} {self.path} HTTP/1.1" {status}'
        return f"{format_stamp(self.server.service.virtual_now())} {line}"

    def requires_key(self, path: str) -> bool:
        return not path.startswith(_OPEN)

    def route(self, path: str, sent: bytes) -> None:
        service = self.server.service
        settings = service.settings
        if self.command != "GET":
            super().route(path, sent)
        elif path in ("/health", "/health_generate"):
            service.wait(_HEALTH_SECONDS)
            self.send(200, b"", "application/json")
        elif path == "/ready":
            self.send(200, b"", "application/json")
        elif path == "/metrics" and settings.native.get("enable_metrics"):
            self.send(200, metrics(settings, service.memory, service.counters).encode(), METRICS_TYPE)
        elif path in ("/server_info", "/get_server_info"):
            self.json(200, self._server_info())
        elif path in ("/model_info", "/get_model_info"):
            self.json(200, {"model_path": settings.model, "served_model_name": settings.served_names[0]})
        else:
            super().route(path, sent)

    def model_card(self, name: str, created: int) -> dict[str, Any]:
        return super().model_card(name, created) | {"owned_by": "sglang", "root": name}

    def _server_info(self) -> dict[str, Any]:
        service = self.server.service
        settings = service.settings
        hidden = {"api_key", "admin_api_key"}
        return {
            **{name: value for name, value in settings.native.items() if name not in hidden},
            "random_seed": random_seed(settings, service.started),
            "max_total_num_tokens": service.memory.kv_cache_tokens,
            "startup_time": startup_times(settings, service.started),
            "internal_states": [],
            "version": settings.environment.version,
            "frontend": "python",
        }
