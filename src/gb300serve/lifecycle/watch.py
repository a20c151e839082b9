"""Beside the log: vital signs, live bars, the outlook, and what there is to say of the kernel tuning."""

from contextlib import ExitStack
from typing import Self

from gb300serve.autotune.sets import price, same_identity, short
from gb300serve.boot.events import Event, PhaseEntered, Progress, Receipt, TuningHit, TuningMiss
from gb300serve.boot.liveness import Judgement, LivenessMonitor, LivenessSample
from gb300serve.boot.machine import BootMachine
from gb300serve.boot.phases import Phase
from gb300serve.boot.progress import BootEstimate, ProgressCounter, estimate
from gb300serve.core.errors import BackendError
from gb300serve.lifecycle.backend import Bars, DumpsStacks, ShowsBars, TellsVitals, Vitals
from gb300serve.lifecycle.events import HealthChanged, StackTaken, TuningForeseen, Watching
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.tools import Tools

# Seconds, of the container's own, between two looks at its vital signs: each is a call to its engine of containers, and
# what they are judged by is a minute long.
VITALS_EVERY = 2.0
_SAVED_ONCE = "wait: the set is saved once, when tuning ends, and the next boot loads it"
_NEVER_SAVED = "waiting helps this boot only: beside such a file nothing is saved, and every boot tunes again"


class Attention:
    """Everything about one watched container that is not its log; use as a context manager."""

    def __init__(self, container: str, launch: Launch, tools: Tools) -> None:
        self._container = container
        self._launch = launch
        self._tools = tools
        self._stack = ExitStack()
        self._bars: Bars | None = None
        self._liveness = LivenessMonitor()
        self._vitals = Vitals()
        self._looked_at: float | None = None
        self._moves = 0
        self._phase: Phase | None = None
        self._entered_at = 0.0
        self._bar: ProgressCounter | None = None
        self._tuning_since: float | None = None
        self._told_of_tuning = False
        self.judgement = Judgement("working", ("it has just started",))

    def __enter__(self) -> Self:
        backend = self._tools.backend
        if isinstance(backend, ShowsBars):
            self._bars = self._stack.enter_context(backend.bars(self._container))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def sees(self) -> bool:
        """Whether anything but the log tells of the container."""
        return self._vitals.cpu_seconds is not None or self._vitals.gpu is not None

    def glimpse(self, machine: BootMachine, at: float) -> tuple[Event, ...]:
        """What bars show that the log does not have yet."""
        texts = self._bars.fresh() if self._bars else ()
        return tuple(event for text in texts for event in machine.feed_bar(text, at))

    def take(self, event: Event) -> None:
        """An event of the boot machine, wherever it came from."""
        match event:
            case PhaseEntered(phase, at):
                self._moves += 1
                self._phase, self._entered_at, self._bar = phase, at, None
            case Progress(_, text, done, total, at):
                self._moves += 1
                began = self._bar.began if self._bar and self._bar.text == text else at
                self._bar = ProgressCounter(text, done, total, began, at)
            case TuningMiss(configs, at):
                self._tuning_since = at
                loaded = f"only {configs} configurations were loaded" if configs else "nothing in the cache fits"
                self._foresee(f"kernels are being tuned: {loaded}", at)
            case TuningHit():
                self._told_of_tuning = False
            case Receipt("tuning_cache", values, _, at):
                self._compare(str(values.get("identity", "")), at)
            case Receipt("tuning_cache_ignored", values, _, at):
                why = f"the tuning cache was made in another environment ({values['difference']})"
                self._foresee(why, at, _NEVER_SAVED)
            case _:
                pass

    def tick(self, machine: BootMachine, at: float) -> None:
        """The log is silent: look around, judge, and say how it goes on."""
        self._look(at)
        self._liveness.take(
            LivenessSample(
                at,
                machine.quiet_from,
                self._moves,
                self._vitals.cpu_seconds,
                self._vitals.gpu,
                self._vitals.restarts,
            )
        )
        ahead = self.outlook(at)
        before, self.judgement = self.judgement, self._judge(machine, ahead)
        if self.judgement.health != before.health:
            self._tell(ahead)
        self._tools.announce(Watching(ahead, self.judgement))

    def outlook(self, at: float) -> BootEstimate:
        """How the boot goes on from here."""
        expected = self._launch.expected
        tuned = self._launch.tuning.tuning_seconds
        if self._tuning_since is not None and tuned is not None:
            expected = {**expected, Phase.TUNING_KERNELS.value: tuned}
        return estimate(self._phase, at, self._entered_at, expected, self._bar)

    def _judge(self, machine: BootMachine, ahead: BootEstimate) -> Judgement:
        tuning = machine.result().state == "tuning"
        return self._liveness.judge(tuning=tuning, phase_for=ahead.phase_for, expected=ahead.expected)

    def _look(self, at: float) -> None:
        backend, before = self._tools.backend, self._looked_at
        # A container that was started again counts from 0 again.
        if not isinstance(backend, TellsVitals) or (before is not None and before <= at < before + VITALS_EVERY):
            return
        self._looked_at = at
        try:
            self._vitals = backend.vitals(self._container)
        except BackendError:
            self._vitals = Vitals()  # nobody can tell just now; the log says it when its engine has gone

    def _tell(self, ahead: BootEstimate) -> None:
        stuck = self.judgement.health == "stuck"
        backend = self._tools.backend
        command = backend.stack_command(self._container) if stuck and isinstance(backend, DumpsStacks) else None
        self._tools.announce(HealthChanged(self.judgement, ahead.awaiting, ahead.at, command))
        if stuck and self._launch.stack_dump and isinstance(backend, DumpsStacks):
            self._tools.announce(StackTaken(self._stacks(backend), ahead.at))

    def _stacks(self, backend: DumpsStacks) -> str:
        try:
            return backend.stacks(self._container) or "py-spy is not to be had in the container"
        except BackendError as error:
            return error.message

    def _compare(self, identity: str, at: float) -> None:
        """The name under which the engine looks is the first thing that tells a miss."""
        wanted = self._launch.tuning.identity
        if wanted and identity and not same_identity(wanted, identity):
            self._foresee(f"the engine looks for tuning set {short(identity)}, the recipe expects {short(wanted)}", at)

    def _foresee(self, why: str, at: float, waits: str = _SAVED_ONCE) -> None:
        if self._told_of_tuning:
            return
        self._told_of_tuning = True
        cost = price(self._launch.tuning.tuning_seconds)
        seed = self._launch.command("cache seed")
        ways_out = (
            waits,
            f"or stop it ({self._launch.command('down')}), put a known set in place ({seed}) and launch again",
        )
        self._tools.announce(TuningForeseen(why, cost, ways_out, at))
