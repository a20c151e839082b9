"""The progress of a boot: its bars, what the phase is waiting for, an estimate of the time to READY."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from gb300serve.boot.phases import Phase

_BAR = re.compile(
    r"(?P<title>.*?):? +\d+%.*?(?P<done>[0-9]{1,12})/(?P<total>[0-9]{1,12}) \[(?P<elapsed>[0-9:]{1,12})<?"
)

# A bar fits into a terminal; a search may take the square of a text's length.
LONGEST = 512


@dataclass(frozen=True, slots=True)
class ProgressBar:
    """`elapsed` is seconds since the bar was first drawn."""

    title: str
    done: int
    total: int
    elapsed: float


@lru_cache(maxsize=2)  # the same text is parsed for its time and for its progress
def read_bar(text: str) -> ProgressBar | None:
    """The progress bar in `text`; None if there is none, or if it is cut off."""
    match = _BAR.match(text, 0, LONGEST)
    if match is None:
        return None
    elapsed = 0.0
    for part in match["elapsed"].split(":"):
        elapsed = elapsed * 60 + float(part or 0)
    return ProgressBar(match["title"], int(match["done"]), int(match["total"]), elapsed)


class BarClock:
    """The time of bars without a stamp, from the elapsed time that they show."""

    def __init__(self) -> None:
        self._title = ""
        self._began = 0.0
        self._elapsed = 0.0

    def time_of(self, bar: ProgressBar, now: float) -> float:
        """Seconds since the start of the boot; `now` is the time of the latest stamp."""
        if bar.title != self._title or bar.elapsed < self._elapsed:
            self._title, self._began = bar.title, now - bar.elapsed
        self._elapsed = bar.elapsed
        return self._began + bar.elapsed


AWAITED: dict[Phase, str] = {
    Phase.STARTING: "the engine to parse its arguments and start its processes",
    Phase.LOADING_WEIGHTS: "weights from the disk",
    Phase.OFFLOADING: "weights to be moved to Grace",
    Phase.PROFILING: "the engine to measure its own memory",
    Phase.COMPILING: "graphs to be compiled",
    Phase.SIZING_KV_CACHE: "kernels to warm up beside the KV cache",
    Phase.TUNING_KERNELS: "kernels to be tuned or loaded from the tuning cache",
    Phase.CAPTURING_GRAPHS: "CUDA graphs to be captured",
    Phase.SERVING: "the server to listen and respond",
}


@dataclass(frozen=True, slots=True)
class ProgressCounter:
    """A bar of the engine: `done` of `total`, since `began` (seconds since the container's start)."""

    text: str
    done: int
    total: int
    began: float
    at: float

    def left(self, now: float) -> float | None:
        """Seconds until it is full at the present pace; None before it has moved."""
        if not self.done or self.at <= self.began:
            return None
        return max(0.0, (self.at - self.began) / self.done * (self.total - self.done) - (now - self.at))


@dataclass(frozen=True, slots=True)
class BootEstimate:
    """`expected` is seconds for the phase, `eta` seconds until READY; None if unknown."""

    phase: Phase | None
    at: float
    phase_for: float
    expected: float | None
    bar: ProgressCounter | None
    eta: float | None
    awaiting: str

    def sentence(self) -> str:
        """The status line of a boot."""
        name = self.phase.value if self.phase else "start"
        spent = f"{name} for {self.phase_for:.0f} s" + (f" of about {self.expected:.0f}" if self.expected else "")
        counted = f", {self.bar.text} {self.bar.done}/{self.bar.total}" if self.bar else ""
        ready = f", ready in about {minutes(self.eta)}" if self.eta is not None else ""
        return f"{spent}{counted}{ready}; waiting for {self.awaiting}"


def minutes(seconds: float) -> str:
    """`7:34`, `1:02:03`."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def estimate(
    phase: Phase | None, at: float, entered_at: float, expected: Mapping[str, float], bar: ProgressCounter | None = None
) -> BootEstimate:
    """`expected` is seconds by phase name."""
    phase_for = max(0.0, at - entered_at)
    usual = expected.get(phase.value) if phase else None
    left = _left(phase_for, usual, bar, at)
    later = _later(phase, expected)
    eta = None if left is None or later is None else left + later
    return BootEstimate(phase, at, phase_for, usual, bar, eta, AWAITED[phase] if phase else "the engine's first line")


def _left(phase_for: float, usual: float | None, bar: ProgressCounter | None, at: float) -> float | None:
    counted = bar.left(at) if bar else None
    if counted is not None:
        return counted
    # Past the expected end, no estimate is better than another.
    return None if usual is None or phase_for > usual else usual - phase_for


def _later(phase: Phase | None, expected: Mapping[str, float]) -> float | None:
    """Seconds of the later phases; None if no duration of this one is known."""
    if phase is None:
        return sum(expected.values()) if expected else None
    if phase.value not in expected:
        return None
    order = [name.value for name in Phase]
    return sum(expected.get(name, 0.0) for name in order[order.index(phase.value) + 1 :])
