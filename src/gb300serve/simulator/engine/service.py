"""The requests in flight: slots, queue, durations and counters, and the lines of Prometheus text they become."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from gb300serve.fit.memory import MemoryPlan
from gb300serve.simulator.engine.requests import CompletionRequest, SimulatedCompletion
from gb300serve.simulator.engine.settings import Settings

_TIMES = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 1800.0)
HISTOGRAMS = (
    "time_to_first_token_seconds", "inter_token_latency_seconds", "request_time_per_output_token_seconds",
    "e2e_request_latency_seconds", "request_queue_time_seconds", "request_prefill_time_seconds",
    "request_decode_time_seconds",
)  # fmt: skip
# Answered requests after which a wedged engine hangs: with the first one the lane becomes READY.
_BEFORE_IT_HANGS = 1
REASONS = ("stop", "length", "abort", "error")


@dataclass(slots=True)
class Histogram:
    """Observations at or below each bound, their number and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * len(_TIMES))
    number: int = 0
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        self.number += 1
        self.total += seconds
        for index, bound in enumerate(_TIMES):
            self.counts[index] += seconds <= bound


@dataclass(slots=True)
class Counters:
    """Everything that changes while the engine serves."""

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
    plan = settings.memory_request.speculation
    if plan is None or made <= 0:
        return 0, 0, []
    depth = next((tier[2] for tier in reversed(plan.schedule) if tier[0] <= batch), plan.tokens)
    depth = min(depth, plan.tokens)
    rates = [*settings.checkpoint.decode.acceptance, *[0.1] * depth][:depth]
    drafts = max(1, round(made / (1 + sum(rates))))
    return drafts, drafts * depth, [round(drafts * rate) for rate in rates]


def count_drafts(counters: Counters, settings: Settings, made: int) -> None:
    """Add the drafts for `made` tokens at the current batch size."""
    drafts, proposed, accepted = count_drafted_tokens(settings, made, max(1, counters.running))
    counters.drafts += drafts
    counters.draft_tokens += proposed
    counters.accepted += [0] * (len(accepted) - len(counters.accepted))
    for position, number in enumerate(accepted):
        counters.accepted[position] += number


def sample(name: str, value: float, labels: Mapping[str, str]) -> str:
    """One sample."""
    shown = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return f"{name}{{{shown}}} {float(value)}" if shown else f"{name} {float(value)}"


def family_lines(name: str, kind: str, text: str) -> Iterator[str]:
    """The lines before the samples of a metric."""
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def scalar_lines(
    prefix: str, kind: str, figures: Mapping[str, tuple[str, float]], labels: Mapping[str, str]
) -> Iterator[str]:
    """Gauges or counters: help text and value by name."""
    for name, (text, value) in figures.items():
        yield from (*family_lines(f"{prefix}{name}", kind, text), sample(f"{prefix}{name}", value, labels))


def histogram_lines(name: str, observed: Histogram, labels: Mapping[str, str]) -> Iterator[str]:
    """A histogram; `name` has the engine's prefix."""
    yield from family_lines(name, "histogram", f"Histogram of {name.partition(':')[2].replace('_', ' ')}.")
    for bound, number in zip(_TIMES, observed.counts, strict=True):
        yield sample(f"{name}_bucket", number, {**labels, "le": str(bound)})
    yield sample(f"{name}_bucket", observed.number, {**labels, "le": "+Inf"})
    yield sample(f"{name}_count", observed.number, labels)
    yield sample(f"{name}_sum", observed.total, labels)


# Measured on the Station: 104,000 tokens in 5.38 s.
_PREFILL_TOKENS_PER_SECOND = 19_300.0


@dataclass(slots=True)
class Service:
    """One serving engine. Times are virtual: a second takes 1/speed real seconds. Hold `lock` to read the counters."""

    settings: Settings
    memory: MemoryPlan
    started: float
    """Real start of the process, seconds since 1970."""
    counters: Counters = field(default_factory=Counters)
    lock: threading.Lock = field(default_factory=threading.Lock)
    _slots: threading.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._slots = threading.Semaphore(self.settings.max_num_seqs)

    def now(self) -> float:
        """Virtual seconds since the process started."""
        return (time.time() - self.started) * self.settings.environment.speed

    def virtual_now(self) -> float:
        """Seconds since 1970 in virtual time, as in the log."""
        return self.started + self.now()

    def wait(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds) / self.settings.environment.speed)

    @contextmanager
    def slot(self) -> Iterator[float]:
        """A slot among the running sequences; yields the virtual seconds spent in the queue."""
        begun = self.now()
        with self.lock:
            self.counters.waiting += 1
        with self._slots:
            with self.lock:
                self.counters.waiting -= 1
                self.counters.running += 1
            try:
                yield self.now() - begun
            finally:
                with self.lock:
                    self.counters.running -= 1

    def hang_if_wedged(self) -> None:
        """Never return, once the fault `wedged` has let enough requests pass for the lane to become READY."""
        fault = self.settings.fault
        if fault is not None and fault.wedged and sum(self.counters.finished.values()) >= _BEFORE_IT_HANGS:
            threading.Event().wait()

    def token_seconds(self) -> float:
        """Time per token at the current batch size, interpolated between the measured sizes 1 and 16."""
        decode = self.settings.checkpoint.decode
        alone, together = 1 / decode.tokens_per_second, 16 / decode.at_16
        return alone + (together - alone) * (max(1, self.counters.running) - 1) / 15

    def prefill_seconds(self, request: CompletionRequest) -> float:
        return 0.05 + request.prompt_tokens / _PREFILL_TOKENS_PER_SECOND

    def count_finished(
        self, request: CompletionRequest, completion: SimulatedCompletion, queued: float, pace: float
    ) -> None:
        """Count an answered request; `pace` is the time per token."""
        made = completion.completion_tokens
        first, decode = self.prefill_seconds(request), pace * max(0, made - 1)
        observations = {
            "time_to_first_token_seconds": queued + first,
            "inter_token_latency_seconds": pace,
            "request_time_per_output_token_seconds": pace,
            "e2e_request_latency_seconds": queued + first + decode,
            "request_queue_time_seconds": queued,
            "request_prefill_time_seconds": first,
            "request_decode_time_seconds": decode,
        }
        with self.lock:
            self.counters.prompt_tokens += request.prompt_tokens
            self.counters.generation_tokens += made
            reason = "length" if completion.finish_reason == "length" else "stop"
            self.counters.finished[reason] += 1
            count_drafts(self.counters, self.settings, made)
            for name, value in observations.items():
                self.counters.histograms[name].observe(value)
