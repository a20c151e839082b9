"""How a watched boot ends badly (exit 8), and what an interruption leaves behind (exit 130)."""

from dataclasses import dataclass
from typing import ClassVar

from gb300serve.boot.diagnosis import Diagnosis
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from gb300serve.core.errors import BootError, Gb300Error
from gb300serve.core.redaction import redact
from gb300serve.lifecycle.backend import Listener
from gb300serve.lifecycle.launch import Launch

SIGKILLED = 137
# A traceback's last frames and its error, on half a screen; the engine's echo of its configuration is a line of 5 kB.
TAIL_SHOWN, LONGEST = 12, 200


@dataclass(frozen=True, slots=True)
class Ending:
    """What is known of a boot that did not become READY. `exit_code` is None while the container runs."""

    diagnosis: Diagnosis
    tail: tuple[str, ...]
    seconds: float
    exit_code: int | None = None
    oom_killed: bool = False
    gone: bool = False
    """The container was removed meanwhile."""
    container: str | None = None
    """What the container is called now that it was set aside."""
    put_back: tuple[str, ...] = ()
    """Names that run again because this launch had replaced them."""
    unkept: tuple[str, ...] = ()
    """Sentences about receipts without which the recipe calls the boot failed."""

    @property
    def phase(self) -> Phase:
        return self.diagnosis.phase

    @property
    def reason(self) -> Reason:
        """The diagnosis', else what the way it ended tells: a killed engine says nothing, or not who killed it."""
        if self.oom_killed and self.diagnosis.reason in {None, Reason.KILLED, Reason.UNKNOWN}:
            return Reason.HOST_OOM_KILLED
        if self.diagnosis.reason is not None:
            return self.diagnosis.reason
        return Reason.KILLED if self.exit_code == SIGKILLED else Reason.UNKNOWN


class BootFailedError(BootError):
    """The container ended, or named a cause and hangs. The message begins with the line that names the cause."""

    def __init__(self, launch: Launch, ending: Ending) -> None:
        super().__init__(f"{_cause(launch, ending)}\n{_circumstances(ending)}", hint=_advice(launch, ending))
        self.details = () if ending.unkept else _last_lines(launch, ending)
        self.launch = launch
        self.ending = ending


class BootTimedOutError(BootError):
    """No sign of life for longer than the patience of the phase."""

    def __init__(self, launch: Launch, ending: Ending, waiting_for: str, silent: float) -> None:
        super().__init__(
            f"{launch.name} gave no sign of life for {silent:.0f} s; waiting for: {waiting_for}\n"
            f"phase {ending.phase}, {ending.seconds:.0f} s after its start",
            hint=(
                f"{_kept(launch, ending) or f'{launch.name} is left running'}; its log: {launch.command('logs')}; "
                f"watch on: {launch.command('up')}; stop it: {launch.command('down')}"
            ),
        )
        self.launch = launch
        self.ending = ending
        self.waiting_for = waiting_for
        self.silent = silent


class WrongServerError(BootError):
    """The engine says that it started, and another server answers on its port: ours never will."""

    def __init__(self, launch: Launch, ending: Ending, listener: Listener | None = None) -> None:
        who = f"{listener.process or 'a process'} listens on {listener.address}:{listener.port}" if listener else ""
        whose = f"{who}, and is not" if who else "it is not the one in"
        find = f"find it (ss -ltnp 'sport = :{launch.plan.port}'), end it"
        end = f"end it (see what it is: ps -fp {listener.pid})" if listener and listener.pid else find
        super().__init__(
            f"another server answers at {launch.endpoint.url}: {whose} {launch.name}, our container, which shares "
            "the port with it and will never answer",
            hint=f"{end}, and launch again: {launch.command('up')}",
        )
        self.launch = launch
        self.ending = ending
        self.listener = listener


class LaneEndedError(BootError):
    """The lane ended while its log was followed, and nobody had asked it to."""

    def __init__(self, launch: Launch, ending: Ending) -> None:
        super().__init__(
            f"{_cause(launch, ending)}\n{launch.name} died while serving: {_circumstances(ending)}",
            hint=f"the log is kept: {launch.command('logs')}; start it again: {launch.command('up')}",
        )
        self.launch = launch
        self.ending = ending


class LaunchOvertakenError(BootError):
    """Another command has stopped the container while its boot was watched: what serves is that command's to say."""

    def __init__(self, launch: Launch, by: str) -> None:
        super().__init__(
            f"{launch.name} was stopped while it booted, by {by}; everything is left as that command left it",
            hint=f"see: {launch.beside('status')}; launch it again: {launch.command('up')}",
        )
        self.launch = launch


class CrashLoopError(BootError):
    """The engine died again and again under its restart policy; `first` is how it died the first time."""

    def __init__(self, launch: Launch, first: Ending, deaths: int, *, stopped: bool) -> None:
        after = "its restart policy was taken away and it was stopped" if stopped else "it could not be stopped"
        super().__init__(
            f"{_cause(launch, first)}\n{launch.name} died {deaths} times in a row under its restart policy; {after}\n"
            f"the first time: {_circumstances(first)}",
            hint="\n".join((*first.diagnosis.advice, f"its log: {launch.command('logs')}")),
        )
        self.launch = launch
        self.ending = first


class LaunchInterruptedError(Gb300Error):
    """Ctrl-C. One line, which is the last one, says what became of the container and what to do now."""

    exit_code: ClassVar[int] = 130

    def __init__(self, launch: Launch, *, running: bool, put_back: tuple[str, ...] = ()) -> None:
        if running:
            message = f"interrupted; {launch.name} keeps running"
            now = f"watch it again: {launch.command('up')}; stop it: {launch.command('down')}"
        elif put_back:
            message = f"interrupted before {launch.name} was started; {', '.join(put_back)} was started again"
            now = f"see: {launch.beside('status')}"
        else:
            message = f"interrupted; nothing of {launch.ref} is running"
            now = f"start it: {launch.command('up')}"
        super().__init__(f"{message}; {now}")
        self.running = running


def _cause(launch: Launch, ending: Ending) -> str:
    if ending.unkept:
        return "\n".join(("it serves, but not what the recipe describes", *ending.unkept))
    if ending.diagnosis.evidence:
        return redact(ending.diagnosis.evidence[0].text, launch.secrets.values())
    if ending.gone:
        return "the container was removed while it booted"
    if ending.oom_killed:
        return "the container was killed for want of host memory: its log just stops"
    if ending.exit_code is not None:
        return f"the engine ended with exit code {ending.exit_code} and named no cause"
    return "the engine named no cause"


def _circumstances(ending: Ending) -> str:
    if ending.unkept:
        return f"{len(ending.unkept)} of its receipts not kept, {ending.seconds:.0f} s after the start"
    code = "" if ending.exit_code is None else f", exit code {ending.exit_code}"
    memory = ", out of memory" if ending.oom_killed else ""
    return f"{ending.reason} in phase {ending.phase}, {ending.seconds:.0f} s after the start{code}{memory}"


def _last_lines(launch: Launch, ending: Ending) -> tuple[str, ...]:
    """The end of the log: what a boot that names no cause is judged by. The cause itself is said once, above."""
    said = tuple(item.text[-LONGEST:] for item in ending.diagnosis.evidence if item.text.strip())
    other = [line for line in ending.tail if not (said and line.endswith(said))]
    last = [redact(line, launch.secrets.values()) for line in other[-TAIL_SHOWN:]]
    shown = [line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…" for line in last]
    return ("the end of its log:", *shown) if shown else ()


def _advice(launch: Launch, ending: Ending) -> str:
    """One thing to do a line."""
    parts = [*ending.diagnosis.advice, _kept(launch, ending)]
    if ending.put_back:
        parts.append(f"{', '.join(ending.put_back)} was put back and boots again: {launch.beside('status')}")
    return "\n".join(part for part in parts if part) or f"read the log: {launch.command('logs')}"


def _kept(launch: Launch, ending: Ending) -> str:
    """Where its log is. Only Docker has a command that takes the name of any container."""
    if not ending.container:
        return ""
    log = launch.command("logs") if launch.on == "sim" else f"docker logs {ending.container}"
    return f"the container is kept as {ending.container} ({log})"
