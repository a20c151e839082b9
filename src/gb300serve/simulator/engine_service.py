"""The requests in flight: who runs, who waits, how long each takes, and what the counters say of it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from gb300serve.fit.model import MemoryPlan
from gb300serve.simulator.engine_answer import SimulatedCompletion
from gb300serve.simulator.engine_metrics import Counters, count_drafts, metrics
from gb300serve.simulator.engine_request import CompletionRequest
from gb300serve.simulator.engine_settings import Settings

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
