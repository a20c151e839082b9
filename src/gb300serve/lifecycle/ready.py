"""Watch a boot: log, clock and probes until READY, or until the cause of a failure is known."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gb300serve.boot import events as boot
from gb300serve.boot.phases import DEFAULT_PATIENCE, PATIENCE, Phase
from gb300serve.boot.receipts import CheckedReceipt
from gb300serve.core.errors import BackendError
from gb300serve.fit.remedy import BootLogReader
from gb300serve.lifecycle.backend import Absence, Container, LogLine
from gb300serve.lifecycle.events import BecameReady, BootEvent, Elapsed, LogSeen, NotReady, ReceiptsChecked
from gb300serve.lifecycle.failures import BootFailedError, BootTimedOutError, Ending, WrongServerError
from gb300serve.lifecycle.identity import (
    BootIdentity,
    boot_identity,
    exclude_other_servers,
    is_plausible,
    listener_instead,
)
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.receipts import ReceiptCollector, binding, verdict
from gb300serve.lifecycle.reconcile import find_remaining, is_live
from gb300serve.lifecycle.steps import AwaitReady
from gb300serve.lifecycle.tools import Tools
from gb300serve.lifecycle.watch import BootWatch
from gb300serve.probe.readiness import Readiness, check_completion, check_presence

# Loading from a network share took eight times as long as from local NVMe (1,246 s against 153 s) and succeeded.
FACTOR = 10.0
# From "startup complete" to a completed request; the first request may compile kernels for two minutes.
ANSWER_PATIENCE = 900.0
# The log names a cause, but the engine neither ends nor continues: its processes hang in their shutdown. The simulated
# Station's 60 s pass in 0.1 s, in which a busy machine may not run the engine's exit: so also wall-clock seconds.
CAUSE_PATIENCE = 60.0
CAUSE_PATIENCE_WALL = 3.0


def patience(phase: Phase | None, expected: Mapping[str, float]) -> float:
    """Seconds since the last sign of life (a phase, progress, a receipt), in the container's time."""
    return DEFAULT_PATIENCE if phase is None else max(PATIENCE[phase], FACTOR * expected.get(phase.value, 0.0))


# Wall-clock seconds between two ticks of a silent log, and between two probes: READY is reported within one second,
# and no tick comes before its probe is due.
TICK = 0.5
PROBE_EVERY = 0.4
TAIL = 40
# Docker reports an exit shortly after the log has ended.
SETTLE_TRIES = 25
SETTLE_EVERY = 0.2
# An engine that is silent but busy gets four times the patience of its phase (two hours, six for tuning): tuning took
# 81 minutes once.
BUSY_FACTOR = 4.0
_NO_SIGN_OF_LIFE = (boot.CauseFound, boot.Stalled, boot.Stopped)


class ContainerGoneError(BackendError):
    """The container was removed between two steps."""

    def __init__(self, name: str) -> None:
        super().__init__(f"container {name} no longer exists", hint="list containers: docker ps -a")


@dataclass(frozen=True, slots=True)
class Served:
    """READY. `stream` is the rest of the followed log; None if the lane served already and no log was read."""

    container: Container
    readiness: Readiness
    seconds: float
    stream: Iterator[LogLine | None] | None = None
    receipts: tuple[CheckedReceipt, ...] = ()
    """Empty if the lane served already."""

    @property
    def already(self) -> bool:
        return self.stream is None


def await_ready(step: AwaitReady, launch: Launch, tools: Tools) -> Served:
    """Raises BootFailedError, BootTimedOutError or WrongServerError (exit 8); announces every event."""
    container = tools.backend.find(step.container)
    if container is None:
        raise ContainerGoneError(step.name)
    if step.running:
        identity = boot_identity(container, launch.endpoint, tools.backend)
        # A hanging completion is no slow boot: a lane that has served is judged as by `status --check`.
        answer = _served_before(container, launch, tools, identity) or _probe(container, launch, tools, identity)
        if answer.state == "ready" and is_plausible(answer, launch.endpoint, identity):
            return Served(container, answer, tools.backend.elapsed(container.id))
    container = _begun(container, tools)
    with BootWatch(container.id, launch, tools) as watch:
        return _Boot(container, launch, tools, watch).run()


def _served_before(container: Container, launch: Launch, tools: Tools, identity: BootIdentity) -> Readiness | None:
    """The answer of a server that is ours, lists the model and has generated tokens; None for any other one."""
    answer = _presence(container, launch, tools, identity)
    made = answer.metrics.generation_tokens if answer.metrics else None
    return answer if answer.state == "ready" and made else None


def _begun(container: Container, tools: Tools) -> Container:
    """The container with its start time, which the command that started it may not have recorded."""
    for _ in range(SETTLE_TRIES):
        if not is_live(container) or container.started_at is not None:
            break
        tools.clock.sleep(SETTLE_EVERY)
        container = tools.backend.find(container.id) or container
    return container


def _probe(container: Container, launch: Launch, tools: Tools, identity: BootIdentity) -> Readiness:
    answer, endpoint = _presence(container, launch, tools, identity), launch.endpoint
    # A foreign server gets no completion requests, which would come twice a second during our boot.
    return check_completion(tools.http, endpoint, answer) if is_plausible(answer, endpoint, identity) else answer


def _presence(container: Container, launch: Launch, tools: Tools, identity: BootIdentity) -> Readiness:
    names, endpoint = launch.plan.served_names, launch.endpoint
    answer = check_presence(tools.http, endpoint, names, container.began, identity.figures)
    return exclude_other_servers(answer, container, endpoint, tools)


class _Boot:
    """One boot of one container. Times are seconds since its start, in its own time, unless named `wall`."""

    def __init__(self, container: Container, launch: Launch, tools: Tools, watch: BootWatch) -> None:
        self.watch = watch
        self.collector = ReceiptCollector(launch)
        self.container = container
        self.launch = launch
        self.tools = tools
        self.reading = BootLogReader(tools.machine())
        self.identity = BootIdentity()
        self.absence = Absence(tools.clock)
        self.tail: deque[str] = deque(maxlen=TAIL)
        self.phase: Phase | None = None
        self.at = 0.0
        # For a running container, patience begins with the watch.
        self.alive_at = tools.backend.elapsed(container.id) if is_live(container) else 0.0
        self.complete_at: float | None = None
        self.cause_at: float | None = None
        self.cause_at_wall = 0.0
        self.probe_at_wall = 0.0
        self.began_at_wall = tools.clock.now()
        self.tick_at_wall = self.began_at_wall + TICK
        self.proved_at: float | None = None
        self.answer = Readiness("silent", "the port does not answer yet")

    def run(self) -> Served:
        while True:
            try:
                stream = self.tools.backend.follow(self.container.id, TICK)
                for line in stream:
                    ready = False
                    with self.absence:
                        ready = self._ready(line)
                    if ready:
                        return self._served(stream)
            except BackendError:
                if find_remaining(self.tools.backend, self.container.id) is not None:
                    raise
            self._refuse_end()
            # The stream ended although the container runs (Docker restarted): read the log again.
            self.reading, self.collector = BootLogReader(self.tools.machine()), ReceiptCollector(self.launch)
            self.tools.clock.sleep(2 * TICK)

    def _ready(self, line: LogLine | None) -> bool:
        """Process one line or silence; True once READY is proved."""
        events: tuple[boot.Event, ...] = ()
        if line is None:
            self.at = self.tools.backend.elapsed(self.container.id)
        else:
            self.at = line.elapsed
            self.tail.append(line.text)
            self.tools.announce(LogSeen(line))
            events = self.reading.feed(line.text, line.elapsed)
            self.collector.feed(line.text, events)
        for event in events:
            self.identity.take(event)
            self._take(event, self.at)
        if line is not None:
            self.identity.take_line(line.text)
        # A log with heartbeats is never silent, so ticks also follow the clock.
        now = self.tools.clock.now()
        ticks = line is None or now >= self.tick_at_wall
        if ticks:
            self._tick(self.at)
        probe_is_due = now >= self.probe_at_wall or any(isinstance(event, boot.StartupComplete) for event in events)
        if self.proved_at is None and probe_is_due and self._prove_in_time():
            self.proved_at = self.tools.backend.elapsed(self.container.id)
        # The server may answer before its log is read that far: receipts are judged on the whole boot.
        if self.proved_at is not None:
            return line is None or self.complete_at is not None or self.at > self.proved_at
        if ticks:
            self._refuse_silence(self.at)
        return False

    def _tick(self, at: float) -> None:
        self.tick_at_wall = self.tools.clock.now() + TICK
        for event in (*self.watch.glimpse(self.reading.machine, at), *self.reading.machine.tick(at)):
            self._take(event, at)
        self.tools.announce(Elapsed(self.phase, at))
        self.watch.tick(self.reading.machine, at)

    def _take(self, event: boot.Event, at: float) -> None:
        if isinstance(event, boot.PhaseEntered):
            self.phase = event.phase
        if not isinstance(event, _NO_SIGN_OF_LIFE):
            self.alive_at = max(self.alive_at, at)
            self.cause_at = None
        if isinstance(event, boot.StartupComplete):
            self.complete_at = at
        if isinstance(event, boot.CauseFound):
            self.cause_at, self.cause_at_wall = at, self.tools.clock.now()
        expected = self.launch.expected.get(self.phase.value) if self.phase else None
        self.tools.announce(BootEvent(event, expected))
        self.watch.take(event)

    def _prove_in_time(self) -> bool:
        """A port that accepts and never answers costs 5 s per probe: read the log for twice as long in between."""
        began = self.tools.clock.now()
        proved = self._prove()
        self.probe_at_wall = began + max(PROBE_EVERY, 2 * (self.tools.clock.now() - began))
        return proved

    def _prove(self) -> bool:
        before = self.answer.why
        self.answer = _probe(self.container, self.launch, self.tools, self.identity)
        if self.answer.state == "ready":
            return is_plausible(self.answer, self.launch.endpoint, self.identity) and self._same_start()
        if self.complete_at is not None:
            listener = listener_instead(self.container, self.launch.endpoint, self.tools)
            if listener is not None or self.answer.state == "other-server":
                raise WrongServerError(self.launch, self._ending(), listener)
        if self.complete_at is not None and self.answer.why != before:
            self.tools.announce(NotReady(self.answer.why))
        return False

    def _same_start(self) -> bool:
        now = self.tools.backend.find(self.container.id)
        return now is not None and now.state == "running" and now.started_at == self.container.started_at

    def _served(self, stream: Iterator[LogLine | None]) -> Served:
        seconds = self.tools.backend.elapsed(self.container.id)
        model = self.answer.model.name if self.answer.model else self.launch.plan.served_names[0]
        receipts = self._receipts()
        known = self.answer.identity == "ours"
        self.tools.announce(BecameReady(self.container.name, model, seconds, identity_known=known))
        container = self.tools.backend.find(self.container.id) or self.container
        return Served(container, self.answer, seconds, stream, receipts)

    def _receipts(self) -> tuple[CheckedReceipt, ...]:
        receipts = self.collector.results(self.container.id, self.tools.backend)
        self.tools.announce(ReceiptsChecked(receipts, binding(self.launch)))
        if verdict(receipts, self.launch) == "failed":
            unkept = tuple(receipt.sentence() for receipt in receipts if not receipt.good)
            raise BootFailedError(self.launch, replace(self._ending(), unkept=unkept))
        return receipts

    def _refuse_silence(self, at: float) -> None:
        if self._hangs(at) and self.reading.machine.result().state == "failed":
            raise BootFailedError(self.launch, self._ending())
        timeout = self.launch.timeout
        if timeout is not None and self.tools.clock.now() - self.began_at_wall > timeout:
            ending, silent = self._ending(), at - self.alive_at
            raise BootTimedOutError(self.launch, ending, self._waiting_for(), silent, limited=True)
        limit = ANSWER_PATIENCE if self.complete_at is not None else patience(self.phase, self.launch.expected)
        if self.watch.judgement.active and self.watch.sees:
            limit *= BUSY_FACTOR
        silent = at - self.alive_at
        if silent > limit:
            raise BootTimedOutError(self.launch, self._ending(), self._waiting_for(), silent)

    def _hangs(self, at: float) -> bool:
        waited_wall = self.tools.clock.now() - self.cause_at_wall
        return self.cause_at is not None and at - self.cause_at > CAUSE_PATIENCE and waited_wall > CAUSE_PATIENCE_WALL

    def _waiting_for(self) -> str:
        if self.complete_at is not None:
            return self.answer.why
        return f"the end of the phase {self.phase}" if self.phase else "the engine's first line"

    def _refuse_end(self) -> None:
        for _ in range(SETTLE_TRIES):
            now = find_remaining(self.tools.backend, self.container.id)
            if now is None or not is_live(now) or now.started_at != self.container.started_at:
                raise BootFailedError(self.launch, self._ending(now, ended=True))
            self.tools.clock.sleep(SETTLE_EVERY)
        self._refuse_silence(self.tools.backend.elapsed(self.container.id))

    def _ending(self, now: Container | None = None, *, ended: bool = False) -> Ending:
        return Ending(
            diagnosis=self.reading.result(),
            tail=tuple(self.tail),
            seconds=self.at,
            exit_code=now.exit_code if now and not is_live(now) else None,
            oom_killed=now.oom_killed if now else False,
            gone=ended and now is None,
        )
