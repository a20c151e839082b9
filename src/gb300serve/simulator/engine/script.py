"""Progress bars: shards end each update with a line feed, all others only with a carriage return."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class Write:
    """Write `text` as it is: a line ends in a line feed, an update of a bar begins with a carriage return."""

    at: float
    stream: Stream
    text: str


@dataclass(frozen=True, slots=True)
class Enter:
    """A phase of the boot begins; nothing is written."""

    at: float
    phase: str


@dataclass(frozen=True, slots=True)
class Bind:
    """Take the port, without listening."""

    at: float


@dataclass(frozen=True, slots=True)
class Save:
    """Write the tuning cache: `configs` kernels under `path` below the cache root."""

    at: float
    path: str
    configs: int


@dataclass(frozen=True, slots=True)
class Serve:
    """Listen, and answer until told to end."""

    at: float


@dataclass(frozen=True, slots=True)
class Repeat:
    """Say the same every `every` virtual seconds, for ever; `{stamp}` in it is the time."""

    at: float
    every: float
    stream: Stream
    text: str


@dataclass(frozen=True, slots=True)
class Exit:
    """End with this code; 137 is the kernel's kill, without a word."""

    at: float
    code: int


Event: TypeAlias = Write | Enter | Bind | Save | Serve | Repeat | Exit
Script: TypeAlias = tuple[Event, ...]


API = "APIServer pid=1"
CORE = "EngineCore pid=364"
SITE = "/usr/local/lib/python3.12/dist-packages"


def format_stamp(epoch: float) -> str:
    """The engine's own: month, day and time in UTC, without a year."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%m-%d %H:%M:%S")


def _dated(epoch: float) -> str:
    moment = datetime.fromtimestamp(epoch, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d}"


def format_clock(seconds: float) -> str:
    """`MM:SS`, or `H:MM:SS`, as progress bars write it."""
    whole = int(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes:02d}:{whole % 60:02d}"


def format_bar(done: int, total: int) -> str:
    """Ten cells of a progress bar."""
    eighths = done * 80 // total
    full, rest = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(10)


class EventTimeline:
    """Events in order. `started` is the start of the process in seconds since 1970, UTC, in virtual time."""

    def __init__(self, started: float) -> None:
        self._started = started
        self._events: list[Event] = []
        self.at = 0.0

    @property
    def script(self) -> Script:
        return tuple(self._events)

    @property
    def now(self) -> float:
        """Seconds since 1970, UTC, of what is written next."""
        return self._started + self.at

    def wait(self, seconds: float) -> None:
        """Let virtual time pass."""
        self.at += seconds

    def until(self, at: float) -> None:
        """Let virtual time pass to `at`; never back."""
        self.at = max(self.at, at)

    def say(self, stream: Stream, text: str, end: str = "\n") -> None:
        """One record as it is."""
        self._events.append(Write(self.at, stream, text + end))

    def log(self, process: str, source: str, text: str, level: str = "INFO") -> None:
        """A line of vLLM's own logger (stdout)."""
        for line in text.split("\n"):
            self.say("stdout", f"({process}) {level} {format_stamp(self._started + self.at)} [{source}] {line}")

    def flashinfer(self, source: str, text: str, level: str = "INFO") -> None:
        """A line of FlashInfer's logger (stderr)."""
        dated = _dated(self._started + self.at)
        self.say("stderr", f"({CORE}) {dated} - {level} - {source} - flashinfer.jit: [Autotuner]: {text}")

    def uvicorn(self, text: str, level: str = "INFO") -> None:
        """A line of the HTTP server (stderr)."""
        self.say("stderr", f"({API}) {level + ':':<10}{text}")

    def traceback(self, process: str, frames: Sequence[str], error: str) -> None:
        """The final traceback of a process (stderr). A frame is `file:line:function:source line`."""
        prefix = f"({process}) " if process else ""
        for line in traceback_lines(frames, error):
            self.say("stderr", prefix + line)

    def logged_traceback(self, source: str, frames: Sequence[str], error: str) -> None:
        """The same as an ERROR of the engine process's logger (stdout)."""
        self.log(CORE, source, "\n".join(traceback_lines(frames, error)), level="ERROR")

    def enter(self, phase: str) -> None:
        self._events.append(Enter(self.at, phase))

    def bind(self) -> None:
        self._events.append(Bind(self.at))

    def save(self, path: str, configs: int) -> None:
        self._events.append(Save(self.at, path, configs))

    def serve(self) -> None:
        self._events.append(Serve(self.at))

    def exit(self, code: int) -> None:
        self._events.append(Exit(self.at, code))

    def heartbeat(self, every: float, process: str, source: str, text: str) -> None:
        self._events.append(Repeat(self.at + every, every, "stdout", f"({process}) INFO {{stamp}} [{source}] {text}\n"))

    def extend(self, script: Script) -> None:
        """Take over what another tape holds, as it is."""
        self._events.extend(script)


def traceback_lines(frames: Sequence[str], error: str) -> list[str]:
    """Python's own form; `error` may have several lines."""
    lines = ["Traceback (most recent call last):"]
    for frame in frames:
        file, line, function, source = frame.split(":", 3)
        path = file if file.startswith("/") else f"{SITE}/{file}"
        lines += [f'  File "{path}", line {line}, in {function}', f"    {source}"]
    return lines + error.split("\n")


# One operator's kernels are measured profile by profile; 42.9 s each is what the Station was seen to take.
_TUNED = "[AutoTuner]: Tuning flashinfer::trtllm_fp4_block_scale_moe"
_PROFILE_SECONDS = 42.91
_GRAPHS = 15
_SETTLED = 0.3


def shard_bars(tape: EventTimeline, shards: int, seconds: float) -> None:
    """The checkpoint's shards in up to eight updates, then how long they took."""
    steps = min(8, shards)
    pace = seconds / shards
    begun = tape.at
    for step in range(steps + 1):
        done = shards * step // steps
        tape.until(begun + done * pace)
        if step == 0:
            times = "00:00<?, ?it/s"
        else:
            times = f"{format_clock(done * pace)}<{format_clock((shards - done) * pace)}, {pace:5.2f}s/it"
        share = f"{done * 100 // shards:3d}% Completed | {done}/{shards} [{times}]"
        tape.say("stderr", f"\rLoading safetensors checkpoint shards: {share}")
    tape.say("stderr", "")
    tape.wait(_SETTLED)
    tape.log(CORE, "default_loader.py:501", f"Loading weights took {seconds:.2f} seconds")


@dataclass(frozen=True, slots=True)
class _Bar:
    """What a bar counts: its label, how many, seconds for each, the unit's name, updates in all."""

    label: str
    total: int
    pace: float
    unit: str
    steps: int


def _silent_bar(tape: EventTimeline, of: _Bar) -> None:
    """A bar that rewrites itself; the line feed comes when it is full."""
    begun = tape.at
    for step in range(of.steps + 1):
        done = of.total * step // of.steps
        tape.until(begun + done * of.pace)
        times = f"{format_clock(done * of.pace)}<{format_clock((of.total - done) * of.pace)}, {of.pace:5.2f}s/{of.unit}"
        shown = f"\r{of.label}: {done * 100 // of.total:3d}%|{format_bar(done, of.total)}| {done}/{of.total} [{times}]"
        tape.say("stderr", shown, end="\n" if done == of.total else "")


def capture_bar(tape: EventTimeline, seconds: float) -> None:
    """One capture of CUDA graphs."""
    _silent_bar(tape, _Bar("Capturing CUDA graphs (FULL)", _GRAPHS, seconds / _GRAPHS, "it", steps=5))


def tuning_bar(tape: EventTimeline, seconds: float) -> None:
    """Tuning kernels, profile by profile."""
    total = max(1, round(seconds / _PROFILE_SECONDS))
    _silent_bar(tape, _Bar(_TUNED, total, seconds / total, "profile", steps=total))
