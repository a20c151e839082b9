"""A boot as events in virtual time, and the timeline that collects them. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypeVar

from gb300serve.boot.phases import Phase

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class Write:
    """Write `text` unchanged: a line ends in a line feed, an update of a progress bar begins with a carriage return."""

    at: float
    stream: Stream
    text: str


@dataclass(frozen=True, slots=True)
class Enter:
    """Begin a phase of the boot; nothing is written."""

    at: float
    phase: str


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind the port without listening."""

    at: float


@dataclass(frozen=True, slots=True)
class Save:
    """Write `configs` kernels to the tuning cache file `path`, relative to the cache root."""

    at: float
    path: str
    configs: int


@dataclass(frozen=True, slots=True)
class Serve:
    """Listen and answer requests until a signal arrives."""

    at: float


@dataclass(frozen=True, slots=True)
class Repeat:
    """Write `text` every `every` virtual seconds until a signal arrives; `{stamp}` is replaced by the time (UTC)."""

    at: float
    every: float
    stream: Stream
    text: str
    stamp_format: str


@dataclass(frozen=True, slots=True)
class Exit:
    """End the process with this code; 137 kills it with SIGKILL."""

    at: float
    code: int


Event: TypeAlias = Write | Enter | Bind | Save | Serve | Repeat | Exit
Script: TypeAlias = tuple[Event, ...]


SITE = "/usr/local/lib/python3.12/dist-packages"


def format_clock(seconds: float) -> str:
    """`MM:SS` or `H:MM:SS`, as tqdm prints it."""
    whole = int(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes:02d}:{whole % 60:02d}"


def format_bar(done: int, total: int) -> str:
    """Ten cells of a progress bar."""
    full, rest = divmod(done * 80 // total, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(10)


class EventTimeline:
    """Collects events in order. `started` is the start of the process: seconds since 1970, in virtual time."""

    def __init__(self, started: float) -> None:
        self._started = started
        self._events: list[Event] = []
        self.at = 0.0

    @property
    def script(self) -> Script:
        return tuple(self._events)

    @property
    def now(self) -> float:
        """The time of the next event, in seconds since 1970."""
        return self._started + self.at

    def wait(self, seconds: float) -> None:
        self.at += seconds

    def until(self, at: float) -> None:
        """Advance virtual time to `at`; it never runs backwards."""
        self.at = max(self.at, at)

    def write(self, stream: Stream, text: str, end: str = "\n") -> None:
        self._events.append(Write(self.at, stream, text + end))

    def traceback(self, frames: Sequence[str], error: str, prefix: str = "") -> None:
        """Write the traceback of a process that ends (stderr)."""
        for line in traceback_lines(frames, error):
            self.write("stderr", prefix + line)

    def progress_bar(self, title: str, total: int, seconds: float, unit: str = "it", steps: int | None = None) -> None:
        """Write a bar that overwrites itself `steps` times (default: `total`); a line feed follows the full bar."""
        begun, pace = self.at, seconds / max(1, total)
        for step in range((steps or total) + 1):
            done = total * step // (steps or total)
            self.until(begun + done * pace)
            times = f"{format_clock(done * pace)}<{format_clock((total - done) * pace)}, {pace:5.2f}s/{unit}"
            shown = f"{title}: {done * 100 // total:3d}%|{format_bar(done, total)}| {done}/{total} [{times}]"
            self.write("stderr", f"\r{shown}", end="\n" if done == total else "")

    def enter(self, phase: str) -> None:
        self._events.append(Enter(self.at, phase))

    def bind(self) -> None:
        self._events.append(Bind(self.at))

    def save(self, path: str, configs: int) -> None:
        self._events.append(Save(self.at, path, configs))

    def serve(self) -> None:
        self._events.append(Serve(self.at))

    def repeat(self, every: float, stream: Stream, text: str, stamp_format: str) -> None:
        self._events.append(Repeat(self.at + every, every, stream, text, stamp_format))

    def exit(self, code: int) -> None:
        self._events.append(Exit(self.at, code))


def traceback_lines(frames: Sequence[str], error: str) -> list[str]:
    """Python's format. A frame is `file:line:function:source line`; `error` may have several lines."""
    lines = ["Traceback (most recent call last):"]
    for frame in frames:
        file, line, function, source = frame.split(":", 3)
        path = file if file.startswith("/") else f"{SITE}/{file}"
        lines += [f'  File "{path}", line {line}, in {function}', f"    {source}"]
    return lines + error.split("\n")


TimelineType = TypeVar("TimelineType", bound=EventTimeline)
SettingsType = TypeVar("SettingsType")


def ending(
    timeline_type: Callable[[float], TimelineType], write: Callable[[TimelineType, SettingsType], None]
) -> Callable[[SettingsType, float, float], Script]:
    """What `write` writes, as a function of the settings, the start of virtual time and the time of the first event."""

    def script(settings: SettingsType, started: float, at: float) -> Script:
        timeline = timeline_type(started)
        timeline.until(at)
        write(timeline, settings)
        return timeline.script

    return script


BIND, SERVE = "bind", "serve"
KILLED = 137
"""The exit code of a process that the kernel killed."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. The engine's ENDINGS hold what it prints from there on."""

    summary: str
    at: str | None = None
    """Where the boot is cut: a phase, `bind` or `serve`; None: it is not cut."""
    share: float = 0.0
    seconds: Mapping[str, float] = field(default_factory=dict)
    hook: bool = True
    """False: the hook is not installed."""
    wedged: bool = False
    """It answers a few requests, and then none any more."""
    untuned: bool = False
    foreign: bool = False
    """The tuning cache was made in another environment."""
    drops: tuple[str, ...] = ()
    """Options that never reach the engine."""
    hangs: bool = False
    """Nothing computes from there on."""
    patched: bool = False
    """The pinned files have other content in the container."""
    needs_hook: bool = False


def _dies_in(phase: Phase) -> Fault:
    # A simulated boot without the hook never enters `offloading`, and no simulated boot enters `compiling`.
    skipped = {Phase.OFFLOADING: ("profiling", 0.0), Phase.COMPILING: ("profiling", 0.2)}
    return Fault(f"the GPU fails in the phase {phase}", *skipped.get(phase, (phase.value, 0.5)))


FAULTS: dict[str, Fault] = {
    "cache-miss": Fault("the kernel-tuning cache is empty: 74 minutes of tuning", untuned=True),
    "cache-foreign": Fault(
        "the tuning cache was created in another environment: it is ignored, and nothing is saved", foreign=True
    ),
    "stall": Fault("loading weights hangs; only heartbeats come", "loading-weights", 0.5, hangs=True),
    "tuning-hangs": Fault(
        "kernel tuning stops in the middle, silent and idle", "tuning-kernels", 0.5, untuned=True, hangs=True
    ),
    "slow-disk": Fault("weights on a network share: half an hour of loading", seconds={"loading-weights": 1846.0}),
    "host-oom": Fault("the kernel kills the engine while weights load: the log just stops", "loading-weights", 0.6),
    "gpu-oom": Fault("the weights do not fit the GPU", "loading-weights", 0.1),
    "gpu-busy": Fault("another process holds most of the GPU", "loading-weights", 0.01),
    "port-taken": Fault("another program listens on the port", BIND),
    "hook-failed": Fault("the hook is not installed, and the engine serves without it", hook=False, needs_hook=True),
    "argument-lost": Fault(
        "the prefill threshold is lost between the command and the engine", drops=("long_prefill_token_threshold",)
    ),
    "patch-differs": Fault("the files over the image are not those that the recipe pins", patched=True),
    "hook-aborted": Fault("the hook stops the boot for lack of host memory", "profiling", 0.3, needs_hook=True),
    "crash-after-ready": Fault("the engine process dies a minute after READY; the exit code is 0", SERVE),
    "wedged": Fault("the engine hangs while it serves: health and metrics answer, no request ends", wedged=True),
    **{f"dies-in-{phase}": _dies_in(phase) for phase in Phase},
}


def find_cut(script: Script, fault: Fault) -> tuple[int, float] | None:
    """Index of the first event that no longer happens, and the time of the cut; None if the boot never gets there."""
    kind = {BIND: Bind, SERVE: Serve}.get(fault.at or "")
    if kind is not None:
        places = [(index, event.at) for index, event in enumerate(script) if isinstance(event, kind)]
        # A server that has started keeps serving until the ending comes.
        return (places[0][0] + (kind is Serve), places[0][1]) if places else None
    phases = [event for event in script if isinstance(event, Enter)]
    begun = next((event for event in phases if event.phase == fault.at), None)
    if begun is None:
        return None
    end = next((event.at for event in phases if event.at > begun.at), script[-1].at)
    cut = begun.at + fault.share * (end - begun.at)
    return next(index for index, event in enumerate(script) if event.at >= cut and event is not begun), cut
