"""Whether a boot is working, slow, tuning or stuck, judged by several signs of life. Silence alone never decides."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Health = Literal["working", "slow", "tuning", "stuck"]

# Seconds over which CPU time is averaged; the engine's bars move every 43 s while it tunes.
WINDOW = 60.0
# Seconds. An engine that waits for a lock or a dead disk is silent and idle; one that compiles is silent and busy.
STUCK_AFTER = 120.0
# Cores. An API server that polls its engine takes 1 to 2 % of one.
IDLE_CORES = 0.05
IDLE_GPU = 0.02
# A phase is slow if it takes twice as long as expected: boots of one release differ by 10 %.
SLOW_FACTOR = 2.0
# Samples come every half second; eight in a window are enough to find its beginning.
_SPACING = WINDOW / 8
_KEPT = 64


@dataclass(frozen=True, slots=True)
class LivenessSample:
    """Signs of life at one moment (seconds since the container's start, as all times here).

    `quiet_from`: when the log last printed a line that is not a heartbeat. `moves`: how often a bar or a phase has
    moved. `cpu_seconds` of the whole container and `gpu` (0 to 1) are None if unknown.
    """

    at: float
    quiet_from: float
    moves: int
    cpu_seconds: float | None = None
    gpu: float | None = None
    restarts: int = 0


@dataclass(frozen=True, slots=True)
class Judgement:
    """`because` are the signs that decided, as half-sentences; `active`: a CPU or GPU was busy."""

    health: Health
    because: tuple[str, ...]
    active: bool = True


class LivenessMonitor:
    """Keeps the last samples and judges by them."""

    def __init__(self) -> None:
        self._samples: deque[LivenessSample] = deque(maxlen=_KEPT)
        self._moved_at = 0.0

    def take(self, sample: LivenessSample) -> None:
        """Add the newest sample. The samples before a restart of the container do not count."""
        last = self._samples[-1] if self._samples else None
        if last is not None and sample.restarts != last.restarts:
            self._samples.clear()
        if last is None or sample.moves != last.moves:
            self._moved_at = sample.at
        if len(self._samples) > 1 and self._samples[-1].at - self._samples[-2].at < _SPACING:
            self._samples.pop()
        self._samples.append(sample)

    def judge(self, *, tuning: bool, phase_for: float, expected: float | None) -> Judgement:
        """`phase_for` and `expected` are seconds of the current phase."""
        if not self._samples:
            return Judgement("working", ("it has just started",))
        now = self._samples[-1]
        silent = min(now.at - now.quiet_from, now.at - self._moved_at)
        cores, busy_gpu = self._cores(), None if now.gpu is None else now.gpu > IDLE_GPU
        because = tuple(_because(silent, cores, now))
        if silent < WINDOW:
            return Judgement(_pace(phase_for, expected, tuning=tuning), because)
        known = cores is not None or busy_gpu is not None
        active = bool((cores is not None and cores > IDLE_CORES) or busy_gpu)
        if known and not active and silent >= STUCK_AFTER:
            return Judgement("stuck", because, active=False)
        return Judgement(_pace(phase_for, expected, tuning=tuning), because, active=active)

    def _cores(self) -> float | None:
        """CPU seconds per second, over the window; None without samples that are old enough."""
        now = self._samples[-1]
        before = next((sample for sample in reversed(self._samples) if now.at - sample.at >= WINDOW), None)
        if before is None or now.cpu_seconds is None or before.cpu_seconds is None:
            return None
        return (now.cpu_seconds - before.cpu_seconds) / (now.at - before.at)


def _pace(phase_for: float, expected: float | None, *, tuning: bool) -> Health:
    if tuning:
        return "tuning"
    return "slow" if expected is not None and phase_for > max(SLOW_FACTOR * expected, WINDOW) else "working"


def _because(silent: float, cores: float | None, now: LivenessSample) -> Iterator[str]:
    if silent >= WINDOW:
        yield f"nothing new in the log for {silent:.0f} s"
    if cores is not None:
        yield "no CPU time used" if cores <= IDLE_CORES else f"{cores:.1f} cores busy"
    if now.gpu is not None:
        yield "GPU idle" if now.gpu <= IDLE_GPU else f"GPU {now.gpu:.0%} busy"
    if now.restarts:
        yield f"restarted {now.restarts} times"
