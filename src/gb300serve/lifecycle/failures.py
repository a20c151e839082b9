"""Failures of a watched boot (exit 8), and what an interruption leaves behind (exit 130)."""

from dataclasses import dataclass
from typing import ClassVar

from gb300serve.boot.diagnosis import Diagnosis
from gb300serve.boot.reasons import Reason
from gb300serve.core.errors import Action, BootError, Gb300Error
from gb300serve.core.redaction import redact
from gb300serve.core.text import truncate
from gb300serve.lifecycle.backend import Listener
from gb300serve.lifecycle.launch import Launch

SIGKILLED = 137
# Exit codes after SIGKILL and SIGTERM: those of a stop.
STOPPED = frozenset({SIGKILLED, 143})
# A traceback's last frames and its error, on half a screen; the engine's echo of its configuration is a line of 5 kB.
TAIL_SHOWN, LONGEST = 12, 200


@dataclass(frozen=True, slots=True)
class Ending:
    """How a boot ended that did not become READY. `exit_code` is None while the container runs."""

    diagnosis: Diagnosis
    tail: tuple[str, ...]
    seconds: float
    exit_code: int | None = None
    oom_killed: bool = False
    gone: bool = False
    """The container was removed meanwhile."""
    container: str | None = None
    """The container's name after it was set aside."""
    put_back: tuple[str, ...] = ()
    """Names of containers that this launch had replaced and that run again."""
    unkept: tuple[str, ...] = ()
    """Sentences about missing receipts that make the boot a failure by the recipe."""

    @property
    def reason(self) -> Reason:
        """The diagnosed reason, else the one that the exit status implies: a killed engine logs nothing."""
        if self.oom_killed and self.diagnosis.reason in {None, Reason.KILLED, Reason.UNKNOWN}:
            return Reason.HOST_OOM_KILLED
        if self.diagnosis.reason is not None:
            return self.diagnosis.reason
        return Reason.KILLED if self.exit_code == SIGKILLED else Reason.UNKNOWN


class BootFailedError(BootError):
    """The container ended, or its log names a cause and the engine hangs. The message starts with that log line."""

    def __init__(self, launch: Launch, ending: Ending) -> None:
        super().__init__(f"{_cause(launch, ending)}\n{_circumstances(ending)}", suggest=_advice(launch, ending))
        self.details = () if ending.unkept else _last_lines(launch, ending)
        self.ending = ending


class BootTimedOutError(BootError):
    """No sign of life for longer than the patience of the phase, or the launch's own limit is over (`limited`)."""

    def __init__(
        self, launch: Launch, ending: Ending, waiting_for: str, silent: float, *, limited: bool = False
    ) -> None:
        slow = f"is not READY within {launch.timeout or 0:g} s"
        over = slow if limited else f"gave no sign of life for {silent:.0f} s"
        super().__init__(
            f"{launch.name} {over}; waiting for: {waiting_for}\n"
            f"phase {ending.diagnosis.phase}, {ending.seconds:.0f} s after its start",
            hint=None if ending.container else f"{launch.name} is left running",
            suggest=(
                *(_kept(launch, ending) or (Action("logs", "read its log"),)),
                Action("up", "watch it again"),
                Action("down", "stop it"),
            ),
        )
        self.ending = ending
        self.waiting_for = waiting_for
        self.silent = silent
        self.limited = limited


class WrongServerError(BootError):
    """The engine logged that it started, but another server answers on its port: ours never will."""

    def __init__(self, launch: Launch, ending: Ending, listener: Listener | None = None) -> None:
        who = f"{listener.process or 'a process'} listens on {listener.address}:{listener.port}" if listener else ""
        found = f"ps -fp {listener.pid}" if listener and listener.pid else f"ss -ltnp 'sport = :{launch.plan.port}'"
        super().__init__(
            f"another server answers at {launch.endpoint.url}{f': {who}' if who else ''}; the container {launch.name} "
            "shares the port with it and will never be reached",
            suggest=(f"stop that server; to identify it: {found}", Action("up", "launch again")),
        )
        self.ending = ending
        self.listener = listener


class LaneEndedError(BootError):
    """The lane ended while its log was followed, without a request to stop."""

    def __init__(self, launch: Launch, ending: Ending) -> None:
        super().__init__(
            f"{_cause(launch, ending)}\n{launch.name} died while serving: {_circumstances(ending)}",
            suggest=(Action("logs", "the log is kept"), Action("up", "start it again")),
        )
        self.ending = ending


class LaunchOvertakenError(BootError):
    """Another command stopped the container while its boot was watched; that command decides what serves."""

    def __init__(self, launch: Launch, by: str) -> None:
        super().__init__(
            f"{launch.name} was stopped during its boot by {by}; nothing else was changed",
            suggest=(Action("status", "see what runs", ref=""), Action("up", "launch it again")),
        )


class CrashLoopError(BootError):
    """The engine died repeatedly under its restart policy; `first` is its first death."""

    def __init__(self, launch: Launch, first: Ending, deaths: int, *, stopped: bool) -> None:
        after = "its restart policy was removed and it was stopped" if stopped else "it could not be stopped"
        super().__init__(
            f"{_cause(launch, first)}\n{launch.name} died {deaths} times in a row under its restart policy; {after}\n"
            f"the first time: {_circumstances(first)}",
            suggest=(*first.diagnosis.advice, Action("logs", "read its log")),
        )
        self.ending = first


class LaunchInterruptedError(Gb300Error):
    """Ctrl-C. The last line says what became of the container and what to do next."""

    exit_code: ClassVar[int] = 130
    suggests_in_message = True

    def __init__(self, launch: Launch, *, running: bool, put_back: tuple[str, ...] = ()) -> None:
        suggest: tuple[Action, ...]
        if running:
            message = f"interrupted; {launch.name} keeps running"
            suggest = (Action("up", "watch it again"), Action("down", "stop it"))
        elif put_back:
            message = f"interrupted before {launch.name} was started; {', '.join(put_back)} was started again"
            suggest = (Action("status", "see what runs", ref=""),)
        else:
            message = f"interrupted; no container of {launch.ref} is running"
            suggest = (Action("up", "start it"),)
        super().__init__(message, suggest=suggest)
        self.running = running


def _cause(launch: Launch, ending: Ending) -> str:
    if ending.unkept:
        return "\n".join(("it serves, but not as the recipe describes", *ending.unkept))
    if ending.diagnosis.evidence:
        return redact(ending.diagnosis.evidence[0].text, launch.secrets.values())
    if ending.gone:
        return "the container was removed while it booted"
    if ending.oom_killed:
        return "the container was killed because host memory ran out; its log stops without an error"
    if ending.exit_code is not None:
        return f"the engine ended with exit code {ending.exit_code} and logged no cause"
    return "the engine logged no cause"


def _circumstances(ending: Ending) -> str:
    if ending.unkept:
        return f"{len(ending.unkept)} receipts missing, {ending.seconds:.0f} s after the start"
    code = "" if ending.exit_code is None else f", exit code {ending.exit_code}"
    memory = ", out of memory" if ending.oom_killed else ""
    return f"{ending.reason} in phase {ending.diagnosis.phase}, {ending.seconds:.0f} s after the start{code}{memory}"


def _last_lines(launch: Launch, ending: Ending) -> tuple[str, ...]:
    said = tuple(item.text[-LONGEST:] for item in ending.diagnosis.evidence if item.text.strip())
    other = [line for line in ending.tail if not (said and line.endswith(said))]
    last = [redact(line, launch.secrets.values()) for line in other[-TAIL_SHOWN:]]
    shown = [truncate(line, LONGEST) for line in last]
    return ("the end of its log:", *shown) if shown else ()


def _advice(launch: Launch, ending: Ending) -> tuple[Action | str, ...]:
    put_back = ", ".join(ending.put_back)
    restored = (
        (f"{put_back} was put back and boots again", Action("status", "see what runs", ref="")) if put_back else ()
    )
    advice = (*ending.diagnosis.advice, *_kept(launch, ending), *restored)
    return advice or (Action("logs", "read the log"),)


def _kept(launch: Launch, ending: Ending) -> tuple[Action | str, ...]:
    """Where its log is. Only Docker has a command that takes the name of any container."""
    if not ending.container:
        return ()
    kept = f"the container is kept as {ending.container}"
    if launch.on == "sim":
        return (kept, Action("logs", "read its log"))
    return (f"{kept} (docker logs {ending.container})",)
