"""The requests in flight: who runs, who waits, how long each takes, and what the counters say of it."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from gb300serve.fit.model import MemoryPlan
from gb300serve.simulator.engine.requests import CompletionRequest, SimulatedCompletion
from gb300serve.simulator.engine.settings import Settings

_TIMES = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 1800.0)
HISTOGRAMS = (
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "request_time_per_output_token_seconds",
    "e2e_request_latency_seconds",
    "request_queue_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
)
REASONS = ("stop", "length", "abort", "error")


@dataclass(slots=True)
class Histogram:
    """Counts at or below each bound, their number and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * len(_TIMES))
    number: int = 0
    total: float = 0.0

    def saw(self, value: float) -> None:
        """One observation, in seconds."""
        self.number += 1
        self.total += value
        for index, bound in enumerate(_TIMES):
            self.counts[index] += value <= bound


@dataclass(slots=True)
class Counters:
    """Everything that changes while it serves."""

    running: int = 0
    waiting: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    finished: dict[str, int] = field(default_factory=lambda: dict.fromkeys(REASONS, 0))
    drafts: int = 0
    draft_tokens: int = 0
    accepted: list[int] = field(default_factory=list)
    histograms: dict[str, Histogram] = field(default_factory=lambda: {name: Histogram() for name in HISTOGRAMS})


def count_drafted_tokens(settings: Settings, made: int, batch: int) -> tuple[int, int, list[int]]:
    """Drafts, drafted tokens and accepted tokens by position, for `made` tokens generated in a batch of this size."""
    plan = settings.demand.speculation
    if plan is None or made <= 0:
        return 0, 0, []
    depth = next((tier[2] for tier in reversed(plan.schedule) if tier[0] <= batch), plan.tokens)
    depth = min(depth, plan.tokens)
    rates = [*settings.checkpoint.decode.acceptance, *[0.1] * depth][:depth]
    drafts = max(1, round(made / (1 + sum(rates))))
    return drafts, drafts * depth, [round(drafts * rate) for rate in rates]


def count_drafts(counters: Counters, settings: Settings, made: int) -> None:
    """Add what was drafted for `made` tokens at the present batch size."""
    drafts, proposed, accepted = count_drafted_tokens(settings, made, max(1, counters.running))
    counters.drafts += drafts
    counters.draft_tokens += proposed
    counters.accepted += [0] * (len(accepted) - len(counters.accepted))
    for position, number in enumerate(accepted):
        counters.accepted[position] += number


def sample(name: str, value: float, labels: Mapping[str, str]) -> str:
    """One line of the text."""
    shown = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return f"{name}{{{shown}}} {float(value)}" if shown else f"{name} {float(value)}"


def family_lines(name: str, kind: str, text: str) -> Iterator[str]:
    """The lines before the samples of a series."""
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _counter(name: str, text: str, value: float, labels: Mapping[str, str]) -> Iterator[str]:
    yield from family_lines(name, "counter", text)
    yield sample(name, value, labels)


def histogram_lines(name: str, seen: Histogram, labels: Mapping[str, str]) -> Iterator[str]:
    """A whole histogram; `name` has the engine's prefix."""
    yield from family_lines(name, "histogram", f"Histogram of {name.partition(':')[2].replace('_', ' ')}.")
    for bound, number in zip(_TIMES, seen.counts, strict=True):
        yield sample(f"{name}_bucket", number, {**labels, "le": str(bound)})
    yield sample(f"{name}_bucket", seen.number, {**labels, "le": "+Inf"})
    yield sample(f"{name}_count", seen.number, labels)
    yield sample(f"{name}_sum", seen.total, labels)


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
    """The whole text. `started` is the real start of the process, seconds since 1970: clients compare it."""
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


# 104,000 tokens in 5.38 s on the Station.
_PREFILL_TOKENS_PER_SECOND = 19_300.0


@dataclass(slots=True)
class Service:
    """One serving engine. Times are virtual: a second takes 1/speed of a real one."""

    settings: Settings
    memory: MemoryPlan
    started: float
    """Real start of the process, seconds since 1970."""
    counters: Counters = field(default_factory=Counters)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _seats: threading.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._seats = threading.Semaphore(self.settings.max_num_seqs)

    def now(self) -> float:
        """Virtual seconds since the process started."""
        return (time.time() - self.started) * self.settings.surroundings.speed

    def virtual_now(self) -> float:
        """Seconds since 1970 in virtual time, as the log's stamps count."""
        return self.started + self.now()

    def wait(self, seconds: float) -> None:
        """Let so many virtual seconds pass."""
        time.sleep(max(0.0, seconds) / self.settings.surroundings.speed)

    @contextmanager
    def seat(self) -> Iterator[float]:
        """A place among the running sequences; yields the virtual seconds that the queue took."""
        begun = self.now()
        with self._lock:
            self.counters.waiting += 1
        with self._seats:
            with self._lock:
                self.counters.waiting -= 1
                self.counters.running += 1
            try:
                yield self.now() - begun
            finally:
                with self._lock:
                    self.counters.running -= 1

    def token_seconds(self) -> float:
        """Time of one token at the present batch: alone and sixteen together were measured, the rest lies between."""
        decode = self.settings.checkpoint.decode
        alone, together = 1 / decode.tokens_per_second, 16 / decode.at_16
        return alone + (together - alone) * (max(1, self.counters.running) - 1) / 15

    def prefill_seconds(self, request: CompletionRequest) -> float:
        """Time to the first token."""
        return 0.05 + request.prompt_tokens / _PREFILL_TOKENS_PER_SECOND

    def finished(self, request: CompletionRequest, given: SimulatedCompletion, queued: float, pace: float) -> None:
        """Count a request that was answered; `pace` is the time of one token."""
        made = given.completion_tokens
        first, decode = self.prefill_seconds(request), pace * max(0, made - 1)
        seen = {
            "time_to_first_token_seconds": queued + first,
            "inter_token_latency_seconds": pace,
            "request_time_per_output_token_seconds": pace,
            "e2e_request_latency_seconds": queued + first + decode,
            "request_queue_time_seconds": queued,
            "request_prefill_time_seconds": first,
            "request_decode_time_seconds": decode,
        }
        with self._lock:
            self.counters.prompt_tokens += request.prompt_tokens
            self.counters.generation_tokens += made
            reason = "length" if given.finish_reason == "length" else "stop"
            self.counters.finished[reason] += 1
            count_drafts(self.counters, self.settings, made)
            for name, value in seen.items():
                self.counters.histograms[name].saw(value)

    def metrics(self) -> str:
        """The Prometheus text."""
        with self._lock:
            return metrics(self.settings, self.memory, self.counters, self.started)
