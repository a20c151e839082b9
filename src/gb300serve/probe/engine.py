"""What the server of an engine is asked, as data: an engine is a row here, not a branch elsewhere."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineProbe:
    """Names of series in the text of /metrics; `health_timeout` is seconds that /health may take.

    `server_info` is the path that tells the figures of the server's own start (None: `process_start_time_seconds` of
    /metrics tells when it started). `key_variable` is the environment's name for the key of `/v1`.
    """

    name: str
    requests_running: str
    requests_waiting: str
    kv_cache_usage: str
    health_timeout: float
    server_info: str | None = None
    key_variable: str | None = None


VLLM = EngineProbe(
    name="vllm",
    requests_running="vllm:num_requests_running",
    requests_waiting="vllm:num_requests_waiting",
    kv_cache_usage="vllm:kv_cache_usage_perc",
    health_timeout=5.0,
    key_variable="VLLM_API_KEY",
)

# sglang.srt, 0.5.20 and 0.5.23: observability/metrics_collector.py (a multiprocess registry, which has no start of a
# process), entrypoints/http_server.py: /health lets the model make a token, and waits 20 s for it at most.
SGLANG = EngineProbe(
    name="sglang",
    requests_running="sglang:num_running_reqs",
    requests_waiting="sglang:num_queue_reqs",
    kv_cache_usage="sglang:token_usage",
    health_timeout=25.0,
    server_info="/server_info",
)

ENGINE_PROBES: Mapping[str, EngineProbe] = {"vllm": VLLM, "sglang": SGLANG}
