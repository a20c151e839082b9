"""Watch a boot beyond its log: liveness, progress bars, the estimate, and kernel tuning."""

from contextlib import ExitStack
from typing import Self

from gb300serve.autotune.sets import is_same_identity, short_identity, tuning_time
from gb300serve.boot.events import Event, PhaseEntered, Progress, Receipt, TuningHit, TuningMiss
from gb300serve.boot.machine import BootMachine
from gb300serve.boot.phases import Phase
from gb300serve.boot.progress import BootEstimate, Judgement, LivenessMonitor, LivenessSample, ProgressCounter, estimate
from gb300serve.core.errors import Action, BackendError
from gb300serve.lifecycle.backend import Bars, Vitals
from gb300serve.lifecycle.events import HealthChanged, StackTaken, TuningForeseen, Watching
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.tools import Tools

# Seconds, in the container's time, between two samples of its vital signs: each is a call to Docker, judged
# over a minute.
VITALS_EVERY = 2.0
_SAVED_ONCE = "wait: the set is saved once, when tuning ends, and the next boot loads it"
_NEVER_SAVED = "waiting helps this boot only: with such a file nothing is saved, and every boot tunes again"


class BootWatch:
    """Everything about one watched container except its log; use as a context manager."""

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
        self._announced_tuning = False
        self.judgement = Judgement("working", ("it has just started",))

    def __enter__(self) -> Self:
        bars = self._tools.backend.bars(self._container)
        self._bars = self._stack.enter_context(bars) if bars else None
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def sees(self) -> bool:
        """Whether the container has signs of life other than its log."""
        return self._vitals.cpu_seconds is not None or self._vitals.gpu is not None

    def glimpse(self, machine: BootMachine, at: float) -> tuple[Event, ...]:
        """Events from live progress bars that the log does not have yet."""
        texts = self._bars.fresh() if self._bars else ()
        return tuple(event for text in texts for event in machine.feed_bar(text, at))

    def take(self, event: Event) -> None:
        """Process an event of the boot machine."""
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
                loaded = f"only {configs} configurations were loaded" if configs else "the cache has no matching set"
                self._foresee(f"kernels are being tuned: {loaded}", at)
            case TuningHit():
                self._announced_tuning = False
            case Receipt("tuning_cache", values, _, at):
                self._compare(str(values.get("identity", "")), at)
            case Receipt("tuning_cache_ignored", values, _, at):
                why = f"the tuning cache was created in another environment ({values['difference']})"
                self._foresee(why, at, _NEVER_SAVED)
            case _:
                pass

    def tick(self, machine: BootMachine, at: float) -> None:
        """Sample the signs of life, judge them and announce the estimate."""
        self._look(at)
        vitals, quiet = self._vitals, machine.quiet_from
        sample = LivenessSample(at, quiet, self._moves, vitals.cpu_seconds, vitals.gpu, vitals.restarts)
        self._liveness.take(sample)
        ahead = self.outlook(at)
        tuning, before = machine.result().state == "tuning", self.judgement
        self.judgement = self._liveness.judge(tuning=tuning, phase_for=ahead.phase_for, expected=ahead.expected)
        if self.judgement.health != before.health:
            self._tell(ahead)
        self._tools.announce(Watching(ahead, self.judgement))

    def outlook(self, at: float) -> BootEstimate:
        """The estimate for the rest of the boot."""
        expected = self._launch.expected
        tuned = self._launch.tuning.tuning_seconds
        if self._tuning_since is not None and tuned is not None:
            expected = {**expected, Phase.TUNING_KERNELS.value: tuned[1]}
        return estimate(self._phase, at, self._entered_at, expected, self._bar)

    def _look(self, at: float) -> None:
        before = self._looked_at
        # A restarted container counts from 0 again.
        if before is not None and before <= at < before + VITALS_EVERY:
            return
        self._looked_at = at
        try:
            self._vitals = self._tools.backend.vitals(self._container) or Vitals()
        except BackendError:
            self._vitals = Vitals()  # unknown for now; the end of the log shows an ended engine

    def _tell(self, ahead: BootEstimate) -> None:
        stuck = self.judgement.health == "stuck"
        command = self._tools.backend.stack_command(self._container) if stuck else None
        self._tools.announce(HealthChanged(self.judgement, ahead.awaiting, ahead.at, command))
        if command and self._launch.stack_dump:
            self._tools.announce(StackTaken(self._stacks(), ahead.at))

    def _stacks(self) -> str:
        try:
            return self._tools.backend.stacks(self._container) or "py-spy is not available in the container"
        except BackendError as error:
            return error.message

    def _compare(self, identity: str, at: float) -> None:
        """The identity that the engine looks for is the first sign of a miss."""
        wanted = self._launch.tuning.identity
        if wanted and identity and not is_same_identity(wanted, identity):
            expected = f"the recipe expects {short_identity(wanted)}"
            self._foresee(f"the engine looks for tuning set {short_identity(identity)}, {expected}", at)

    def _foresee(self, why: str, at: float, waits: str = _SAVED_ONCE) -> None:
        if self._announced_tuning:
            return
        self._announced_tuning = True
        cost = tuning_time(self._launch.tuning.tuning_seconds)
        suggest = (Action("down", "or stop it"), Action("cache seed", "then put a known set in place and launch again"))
        self._tools.announce(TuningForeseen(why, cost, (waits, *suggest), at))
