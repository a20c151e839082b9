"""The watch over a boot: log, clock and probes until READY, or until it is known why not."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gb300serve.boot.events import (
    BootBegan,
    CauseFound,
    Event,
    PhaseEntered,
    Progress,
    Receipt,
    StartupComplete,
    TuningHit,
    TuningMiss,
)
from gb300serve.boot.phases import DEFAULT_PATIENCE, PATIENCE, Phase
from gb300serve.boot.receipts import CheckedReceipt
from gb300serve.core.errors import BackendError
from gb300serve.fit.remedy import Reading
from gb300serve.lifecycle.backend import Absence, Container, KnowsProcesses, Listener, LogLine
from gb300serve.lifecycle.events import BecameReady, BootEvent, Elapsed, LogSeen, NotReady, ReceiptsChecked
from gb300serve.lifecycle.failures import BootFailedError, BootTimedOutError, Ending, WrongServerError
from gb300serve.lifecycle.identity import Birth, against_rivals, birth, intruder, is_believed
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.receipts import Witness, binding, verdict
from gb300serve.lifecycle.reconcile import going, live
from gb300serve.lifecycle.steps import AwaitReady
from gb300serve.lifecycle.tools import Tools
from gb300serve.lifecycle.watch import Attention
from gb300serve.probe.readiness import Readiness, check_completion, check_presence

# A checkpoint on a network share took eight times as long as on local NVMe (1,246 s against 153 s), and lived.
FACTOR = 10.0
# From "startup complete" to a completed request; the first request may compile kernels for two minutes.
ANSWER_PATIENCE = 900.0
# A cause was named, and the engine neither ends nor goes on: its processes hang in their own shutdown.
CAUSE_PATIENCE = 60.0


def patience(phase: Phase | None, expected: Mapping[str, float]) -> float:
    """Seconds since the last sign of life (a phase, progress, a receipt), in the container's time."""
    if phase is None:
        return DEFAULT_PATIENCE
    return max(PATIENCE[phase], FACTOR * expected.get(phase.value, 0.0))


# Seconds on the wall between two ticks of a silent log, and between two probes: together less than the second within
# which READY is told, and no tick of a silent log comes too early for a probe.
TICK = 0.5
PROBE_EVERY = 0.4
TAIL = 40
# The engine of containers reports an exit some moments after the log has ended.
SETTLE_TRIES = 25
SETTLE_EVERY = 0.2
# Silent for longer than a phase's patience, and yet at work: tuning took 81 minutes, and nothing says that it is the
# longest. After four times the patience (two hours, six for tuning) nobody waits on.
BUSY_FACTOR = 4.0
_SIGNS_OF_LIFE = (BootBegan, PhaseEntered, Progress, Receipt, TuningHit, TuningMiss, StartupComplete)


class ContainerGoneError(BackendError):
    """Somebody removed it between two steps."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the container {name} is not there any more", hint="see what is: docker ps -a")


@dataclass(frozen=True, slots=True)
class Served:
    """READY. `stream` is the rest of the followed log; None where the lane served already and no log was read."""

    container: Container
    readiness: Readiness
    seconds: float
    stream: Iterator[LogLine | None] | None = None
    receipts: tuple[CheckedReceipt, ...] = ()
    """Empty where the lane served already."""

    @property
    def already(self) -> bool:
        return self.stream is None


def await_ready(step: AwaitReady, launch: Launch, tools: Tools) -> Served:
    """Raises BootFailedError, BootTimedOutError or WrongServerError (exit 8); announces everything on the way."""
    container = tools.backend.find(step.container)
    if container is None:
        raise ContainerGoneError(step.name)
    if step.running:
        told = birth(container, launch.endpoint, tools.backend)
        answer = _probe(container, launch, tools, told)
        if answer.state == "ready" and is_believed(answer, launch.endpoint, told):
            return Served(container, answer, tools.backend.elapsed(container.id))
    container = _begun(container, tools)
    with Attention(container.id, launch, tools) as attention:
        return _Watch(container, launch, tools, attention).run()


def _begun(container: Container, tools: Tools) -> Container:
    """With its moment of start: the command that asked for that may have been killed before it was known."""
    for _ in range(SETTLE_TRIES):
        if not live(container) or container.started_at is not None:
            break
        tools.clock.sleep(SETTLE_EVERY)
        container = tools.backend.find(container.id) or container
    return container


def _probe(container: Container, launch: Launch, tools: Tools, told: Birth) -> Readiness:
    started_at = container.created_at if container.started_at is None else container.started_at
    answer = check_presence(tools.http, launch.endpoint, launch.plan.served_names, started_at, told.figures)
    answer = against_rivals(answer, container, launch.endpoint, tools.backend)
    # A server that is not ours is not put to work, twice a second for as long as our boot takes.
    return (
        check_completion(tools.http, launch.endpoint, answer) if is_believed(answer, launch.endpoint, told) else answer
    )


class _Watch:
    """One boot of one container. Times are seconds since its start, in its own time, unless they say `wall`."""

    def __init__(self, container: Container, launch: Launch, tools: Tools, attention: Attention) -> None:
        self.attention = attention
        self.witness = Witness(launch)
        self.container = container
        self.launch = launch
        self.tools = tools
        self.reading = Reading(tools.machine())
        self.birth = Birth()
        self.absence = Absence(tools.clock)
        self.tail: deque[str] = deque(maxlen=TAIL)
        self.phase: Phase | None = None
        self.at = 0.0
        # A lane that is taken up has been silent before anybody watched: patience begins with the watch.
        self.alive_at = tools.backend.elapsed(container.id) if live(container) else 0.0
        self.complete_at: float | None = None
        self.cause_at: float | None = None
        self.probe_at_wall = 0.0
        self.tick_at_wall = tools.clock.now() + TICK
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
                if self._found() is not None:
                    raise
            self._refuse_end()
            # The stream was cut although the container runs (its engine restarted): read the log again.
            self.reading, self.witness = Reading(self.tools.machine()), Witness(self.launch)
            self.tools.clock.sleep(2 * TICK)

    def _ready(self, line: LogLine | None) -> bool:
        """Take in one line or silence; True once the proof is complete."""
        events: tuple[Event, ...] = ()
        if line is None:
            self.at = self.tools.backend.elapsed(self.container.id)
        else:
            self.at = line.elapsed
            self.tail.append(line.text)
            self.tools.announce(LogSeen(line))
            events = self.reading.feed(line.text, line.elapsed)
            self.witness.feed(line.text, events)
        for event in events:
            self.birth.take(event)
            self._take(event, self.at)
        if line is not None:
            self.birth.hear(line.text)
        # A log that goes on and on (heartbeats, on a fast clock) is never silent, and yet the watch looks around.
        now = self.tools.clock.now()
        ticks = line is None or now >= self.tick_at_wall
        if ticks:
            self._tick(self.at)
        if self.proved_at is None and self._probe_is_due(events, now) and self._prove_in_time():
            self.proved_at = self.tools.backend.elapsed(self.container.id)
        # The server may answer before its log is read up to that moment: receipts are judged on the whole boot.
        if self.proved_at is not None:
            return line is None or self.complete_at is not None or self.at > self.proved_at
        if ticks:
            self._refuse_silence(self.at)
        return False

    def _tick(self, at: float) -> None:
        self.tick_at_wall = self.tools.clock.now() + TICK
        for event in (*self.attention.glimpse(self.reading.machine, at), *self.reading.machine.tick(at)):
            self._take(event, at)
        self.tools.announce(Elapsed(self.phase, at))
        self.attention.tick(self.reading.machine, at)

    def _take(self, event: Event, at: float) -> None:
        if isinstance(event, PhaseEntered):
            self.phase = event.phase
        if isinstance(event, _SIGNS_OF_LIFE):
            self.alive_at = max(self.alive_at, at)
            self.cause_at = None
        if isinstance(event, StartupComplete):
            self.complete_at = at
        if isinstance(event, CauseFound):
            self.cause_at = at
        expected = self.launch.expected.get(self.phase.value) if self.phase else None
        self.tools.announce(BootEvent(event, expected))
        self.attention.take(event)

    def _probe_is_due(self, events: tuple[Event, ...], now: float) -> bool:
        return now >= self.probe_at_wall or any(isinstance(event, StartupComplete) for event in events)

    def _prove_in_time(self) -> bool:
        """What takes connections and says nothing costs 5 s a question: the log is read for as long between two."""
        began = self.tools.clock.now()
        proved = self._prove()
        self.probe_at_wall = began + max(PROBE_EVERY, 2 * (self.tools.clock.now() - began))
        return proved

    def _prove(self) -> bool:
        before = self.answer.why
        self.answer = _probe(self.container, self.launch, self.tools, self.birth)
        if self.answer.state == "ready":
            return is_believed(self.answer, self.launch.endpoint, self.birth) and self._same_start()
        if self.complete_at is not None:
            listener = self._intruder()
            if listener is not None or self.answer.state == "other-server":
                raise WrongServerError(self.launch, self._ending(), listener)
        if self.complete_at is not None and self.answer.why != before:
            self.tools.announce(NotReady(self.answer.why))
        return False

    def _intruder(self) -> Listener | None:
        """The program that has our port, where it can be seen that it is none of our container's."""
        listeners, backend = self.tools.listeners, self.tools.backend
        port = self.launch.endpoint.url.rpartition(":")[2]
        if listeners is None or not isinstance(backend, KnowsProcesses) or not port.isdecimal():
            return None
        try:
            own = backend.processes(self.container.id)
        except BackendError:
            return None  # it has just ended: that is seen by its log
        return intruder(listeners.each_on(int(port)), own, self.launch.address) if own else None

    def _same_start(self) -> bool:
        """It still runs, and was not started again behind our back."""
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
        """Raises BootFailedError where one is not kept without which the recipe calls the boot failed."""
        receipts = self.witness.results(self.container.id, self.tools.backend)
        self.tools.announce(ReceiptsChecked(receipts, binding(self.launch)))
        if verdict(receipts, self.launch) == "failed":
            unkept = tuple(one.sentence() for one in receipts if not one.good)
            raise BootFailedError(self.launch, replace(self._ending(), unkept=unkept))
        return receipts

    def _refuse_silence(self, at: float) -> None:
        hanging = self.cause_at is not None and at - self.cause_at > CAUSE_PATIENCE
        if hanging and self.reading.machine.result().state == "failed":
            raise BootFailedError(self.launch, self._ending())
        limit = ANSWER_PATIENCE if self.complete_at is not None else patience(self.phase, self.launch.expected)
        if self.attention.judgement.active and self.attention.sees:
            limit *= BUSY_FACTOR
        silent = at - self.alive_at
        if silent > limit:
            raise BootTimedOutError(self.launch, self._ending(), self._waiting_for(), silent)

    def _waiting_for(self) -> str:
        if self.complete_at is not None:
            return self.answer.why
        return f"the end of the phase {self.phase}" if self.phase else "the engine's first line"

    def _refuse_end(self) -> None:
        """Raise unless the container still runs the boot that is being watched."""
        for _ in range(SETTLE_TRIES):
            now = self._found()
            if now is None or not live(now) or now.started_at != self.container.started_at:
                raise BootFailedError(self.launch, self._ending(now, ended=True))
            self.tools.clock.sleep(SETTLE_EVERY)
        self._refuse_silence(self.tools.backend.elapsed(self.container.id))

    def _found(self) -> Container | None:
        """None where it is removed, or is being removed."""
        found = self.tools.backend.find(self.container.id)
        return None if found is None or going(found) else found

    def _ending(self, now: Container | None = None, *, ended: bool = False) -> Ending:
        return Ending(
            diagnosis=self.reading.result(),
            tail=tuple(self.tail),
            seconds=self.at,
            exit_code=now.exit_code if now and not live(now) else None,
            oom_killed=now.oom_killed if now else False,
            gone=ended and now is None,
        )
