"""Options that only the simulated Station has: with one of them, nothing is launched for real."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from gb300serve.adapters.host import file_refusal, refusal
from gb300serve.adapters.system import once
from gb300serve.app.cache import CacheDirectories, ReleaseCache
from gb300serve.app.doctor import NOTHING_BEARABLE, Looked, for_launch
from gb300serve.app.launch_journal import Keeper, alone
from gb300serve.app.services import SIM_SPEED, On, Services
from gb300serve.autotune.pins import CacheVerdict
from gb300serve.autotune.sets import short_identity
from gb300serve.cli.console import Console
from gb300serve.cli.views import diagnostics
from gb300serve.cli.views.boot import BootView
from gb300serve.core.errors import CommandLineError, Gb300Error, ServiceError
from gb300serve.journal.history import MeasuredTimes, measured
from gb300serve.journal.journal import StateUnusableError
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.events import Announcement
from gb300serve.lifecycle.execute import Launched, execute
from gb300serve.lifecycle.failures import CrashLoopError, LaneEndedError, LaunchInterruptedError, LaunchOvertakenError
from gb300serve.lifecycle.launch import Launch, moment
from gb300serve.lifecycle.logs import tail
from gb300serve.lifecycle.ready import Served
from gb300serve.lifecycle.receipts import refuse_degraded
from gb300serve.lifecycle.reconcile import prepare
from gb300serve.lifecycle.recorder import Recorder
from gb300serve.lifecycle.status import look_again
from gb300serve.lifecycle.steps import AwaitReady, StartContainer, Step, detached
from gb300serve.lifecycle.tools import Tools
from gb300serve.simulator.station import Rehearsal

# The GPU's memory and the host's, as `fit` computes them.
_MEMORY = frozenset({"PRE030", "PRE031"})


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One launching command. `words` are what other commands are told while they wait for it."""

    launch: Launch
    verb: str
    words: str
    replace: bool = False
    detach: bool = False
    follow: bool = True
    names_back: bool = False
    reason: str | None = None
    told: tuple[str, ...] | None = None
    """What to say, with the steps, before they are carried out."""
    checked: Launch | None = None
    """The launch as preflight finds its recipe, where that is not by its REF."""


def show_steps(asked: LaunchRequest, services: Services) -> int:
    """What would be done, after the same looks as before doing it: refused with the same words and exit code."""
    runs, journal = services.runs.directory, services.journal.path
    for path, problem in ((runs, refusal(runs)), (journal, file_refusal(journal))):
        if problem is not None:
            raise StateUnusableError(path, problem)
    steps = steps_of(asked, services)
    services.space.console.messages(diagnostics.text_lines(noticed(asked, steps, services).found))
    for line in (*(asked.told or ()), *numbered(steps)):
        services.space.console.result(line)
    return 0


def numbered(steps: tuple[Step, ...]) -> tuple[str, ...]:
    """One line a step."""
    return tuple(f"{number}. {step.describe()}" for number, step in enumerate(steps, 1))


def steps_of(asked: LaunchRequest, services: Services) -> tuple[Step, ...]:
    """Look, and decide; changes nothing. Raises MachineError (6) or BackendError (7)."""
    launch, on = asked.launch, asked.launch.on
    services.backend(on).check()
    return prepare(
        launch,
        services.tools(on),
        replace=asked.replace,
        listeners=services.listeners(on),
        neighbours=services.neighbours(on),
    )


def noticed(asked: LaunchRequest, steps: tuple[Step, ...], services: Services) -> Looked:
    """What preflight says; raises MachineUnfitError (6). The simulated Station is where a boot that cannot succeed is
    rehearsed: there memory does not block, and what is only a note is left to `doctor`."""
    simulated = asked.launch.on == "sim"
    looked = for_launch(services, asked.checked or asked.launch, steps, _MEMORY if simulated else NOTHING_BEARABLE)
    if not simulated:
        return looked
    return replace(looked, found=tuple(each for each in looked.found if each.severity == "warning"))


def usual_of(launch: Launch, steps: tuple[Step, ...], services: Services) -> MeasuredTimes:
    """What earlier boots of this plan took, fresh ones or those of a kept container."""
    kept = any(isinstance(step, StartContainer) and step.kept for step in steps)
    return measured(services.history().runs, launch.digest, launch.on, kept=kept)


def expected_of(launch: Launch, steps: tuple[Step, ...], usual: MeasuredTimes) -> dict[str, float]:
    """The recipe's seconds are those of a fresh container; what a kept one took goes before them."""
    kept = any(isinstance(step, StartContainer) and step.kept for step in steps)
    return {**launch.expected, **usual.phases} if kept else {**usual.phases, **launch.expected}


_WRONG = frozenset({"missing", "differs"})
Line = tuple[str, str]


class TuningDegradedError(ServiceError):
    """The lane serves, but not with the kernels that it was measured with, and its recipe calls that degraded (9)."""

    def __init__(self, launch: Launch, verified: CacheVerdict) -> None:
        super().__init__(
            f"DEGRADED: {launch.name} serves, but its tuning set is not the one of its recipe\n"
            + "\n".join(f"  {remark}" for remark in verified.remarks),
            hint=f"it keeps running; see {launch.command('cache verify')}; stop it: {launch.command('down')}",
        )


def check_tuning(asked: LaunchRequest, services: Services) -> CacheVerdict | None:
    """What `cache verify` says now that the engine has written its set; None where nothing is expected or known.

    Says it. Raises nothing: what cannot be read is said, and is no fault of the launch.
    """
    launch, console = asked.launch, services.space.console
    if asked.checked is not None and launch.overrides:
        return None  # what is on record for the release says nothing of what `--set` made of it
    if not services.is_here(launch.on) or not launch.plan.container.mounts:
        return None
    try:
        cache = _cache(asked, services)
        verified = cache.verified() if cache else None
        expected = cache is not None and (cache.pin is not None or cache.expected.identity is not None)
    except Gb300Error as error:
        console.message(f"tuning cache: not verified: {error.message}", "warning")
        console.messages([f"  hint: {error.hint}"] if error.hint else [], "dim")
        return None
    if verified is None or not expected:
        return None
    for text, style in tuning_lines(verified):
        console.message(text, style)
    return verified


def refuse_wrong_tuning(verified: CacheVerdict | None, launch: Launch) -> None:
    """Raises TuningDegradedError where the set is wrong and the recipe says `missing: degrade`."""
    if verified is not None and verified.state in _WRONG and launch.tuning.degrades:
        raise TuningDegradedError(launch, verified)


def tuning_lines(verified: CacheVerdict) -> Iterator[Line]:
    """One line where all is well, else one for each remark."""
    found = verified.found
    if verified.state == "ready" and found is not None and found.content is not None:
        yield (
            f"tuning cache: {short_identity(found.identity)} as expected, {found.content.configs} configurations",
            "good",
        )
    style = "warning" if verified.state in _WRONG else "dim"
    yield from ((f"tuning cache, for the next boot: {remark}", style) for remark in verified.remarks)


def _cache(asked: LaunchRequest, services: Services) -> ReleaseCache | None:
    """None where the container keeps its tuning to itself."""
    launch = asked.launch
    place = CacheDirectories(services, launch.on, launch.command("cache verify"))
    source = asked.checked or launch
    _, recipe = services.space.load(source.ref, source.overrides)
    cache = ReleaseCache(place, source.ref, source.overrides, recipe, launch.plan)
    return cache if place.is_mounted(launch.plan) else None


INTERRUPTED = 130


def launch_and_watch(asked: LaunchRequest, services: Services) -> int:
    """Exit code: 0 where it serves already, was detached, ended on request or is not followed, 130 after Ctrl-C."""
    on = asked.launch.on
    services.runs.check()
    services.journal.check()
    with once(), alone(services.lock(on, asked.words), services) as lock:
        keeper = Keeper(services, on, asked.verb, asked.reason)
        keeper.settle()
        steps = steps_of(asked, services)
        looked = noticed(asked, steps, services)
        services.space.console.messages(diagnostics.text_lines(looked.found))
        usual = usual_of(asked.launch, steps, services)
        launch = replace(asked.launch, expected=expected_of(asked.launch, steps, usual))
        if asked.told is not None:
            services.space.console.messages((*asked.told, *numbered(steps)))
        recorder = keeper.begin(launch, steps, looked)
        with BootView(services.space.console, launch.expected, simulated=on == "sim") as view:
            tools = services.tools(on, _both(recorder, view), lock)
            running = Launching(replace(asked, launch=launch), services, tools, keeper, recorder, view)
            return running.run(detached(steps) if asked.detach else steps)


def _both(recorder: Recorder, view: BootView) -> Callable[[Announcement], None]:
    def announce(announcement: Announcement) -> None:
        recorder.hear(announcement)
        view.show(announcement)

    return announce


@dataclass
class Launching:
    """One launch, from its first step to its last line."""

    asked: LaunchRequest
    services: Services
    tools: Tools
    keeper: Keeper
    recorder: Recorder
    view: BootView

    @property
    def launch(self) -> Launch:
        return self.asked.launch

    @property
    def console(self) -> Console:
        return self.view.console

    def run(self, steps: tuple[Step, ...]) -> int:
        """Raises what execute raises, written down; and DegradedError (9)."""
        try:
            launched = execute(steps, self.launch, self.tools, names_back=self.asked.names_back)
        except Gb300Error as error:
            self._wrong(error, _result(error))
            raise
        self.view.stop()
        try:
            return self._serve(launched, steps)
        except KeyboardInterrupt:
            return self._left()
        finally:
            self.tools.lock.release()

    def _serve(self, launched: Launched, steps: tuple[Step, ...]) -> int:
        launch, served = self.launch, launched.served
        if served is not None and served.already:
            self.recorder.run.discard()  # its record would stand for the launch that the container came from
            notices = look_again(launched.container, launch, self.tools, self.services.history())
            self.console.messages(notices, "warning")
            self._already("serves", launched.container)
            return 0
        if not steps:  # detached, and it runs: whether it serves was not looked at
            self._already("runs", launched.container)
            return 0
        result = "ready" if served else "started"
        watched = any(isinstance(step, AwaitReady) and step.running for step in steps)
        said = f"{launch.plan.recipe} {'became READY' if served else 'boots'} as {launch.name}"
        self.keeper.enter(result, f"{said}; its boot was taken up" if watched else said, self.recorder.run.path.name)
        self.tools.lock.release()
        if served is None:
            self.recorder.learn(launched.container)
            self.recorder.close(state="started", exit={"tool": 0})
            self.console.message(f"{launch.name} boots; watch it with {launch.command('up')}")
            return 0
        self.recorder.keep_metrics(self.tools.http)
        verified = check_tuning(self.asked, self.services)
        self.recorder.save_verdict(tuning=verified.state if verified else None)
        try:
            refuse_degraded(launch, served.receipts)
            refuse_wrong_tuning(verified, launch)
        except Gb300Error as error:
            self._close(error)
            raise
        return self._follow(served) if self.asked.follow else self._done()

    def _already(self, does: str, container: Container) -> None:
        """Nothing was launched, so nothing is kept."""
        launch, since = self.launch, moment(container.started_at)
        self.recorder.run.discard()
        self.console.message(f"{launch.ref} already {does}: {container.name}, at {launch.endpoint.url}, since {since}")

    def _done(self) -> int:
        self.recorder.close(exit={"tool": 0})
        self.console.message(f"serving at {self.launch.endpoint.url}; stop it with {self.launch.command('down')}")
        return 0

    def _follow(self, served: Served) -> int:
        self.view.serving = True
        self.console.message(f"serving at {self.launch.endpoint.url}; its log follows, Ctrl-C leaves it running")
        try:
            ended = tail(served, self.launch, self.tools)
        except (LaneEndedError, CrashLoopError) as error:
            self._wrong(error, "crash-loop" if isinstance(error, CrashLoopError) else "died")
            raise
        self.recorder.close(state="stopped", exit={"tool": 0, **_ending(ended)})
        self.console.message(f"{self.launch.name} was stopped" if ended else f"{self.launch.name} was removed")
        return 0

    def _left(self) -> int:
        """Ctrl-C at a lane that serves."""
        self.recorder.keep_metrics(self.tools.http)
        self.recorder.close(exit={"tool": INTERRUPTED})
        self.console.message(f"\n{self.launch.name} keeps running; stop it with {self.launch.command('down')}")
        return INTERRUPTED

    def _wrong(self, error: Gb300Error, result: str) -> None:
        """What came of it, in the journal and in the run."""
        cause = error.message.partition("\n")[0]
        self.keeper.enter(result, cause, self.recorder.run.path.name, tuple(self.launch.secrets.values()))
        self._close(error, state=result)

    def _close(self, error: Gb300Error, **changes: object) -> None:
        ending = getattr(error, "ending", None)
        verdict = {"message": error.message, "hint": error.hint}
        left = {}
        if ending is not None:
            verdict |= {"reason": ending.reason.value, "diagnosis": ending.diagnosis.as_json()}
            left = {"container": ending.exit_code, "oom_killed": ending.oom_killed, "kept_as": ending.container}
        known = self.recorder.clean({"verdict": verdict, "exit": {"tool": error.exit_code, **left}})
        self.recorder.close(**{**known, **changes})


def _result(error: Gb300Error) -> str:
    if isinstance(error, LaunchOvertakenError):
        return "stopped"  # by another command of ours, on purpose: no failure
    return "interrupted" if isinstance(error, LaunchInterruptedError) else "failed"


def _ending(container: Container | None) -> dict[str, object]:
    return {"container": container.exit_code, "oom_killed": container.oom_killed} if container else {}


class NotSimulatedError(CommandLineError):
    """A rehearsal was asked for, and a real launch was about to follow."""

    def __init__(self, option: str) -> None:
        super().__init__(f"{option} is for the simulated Station, and this would be a real launch", hint="add --on sim")


def only_simulated(rehearsal: Rehearsal, on: On) -> None:
    """Raises NotSimulatedError (2) where `rehearsal` asks for what Docker has not."""
    if on == "sim":
        return
    if rehearsal.fault is not None:
        raise NotSimulatedError(f"--sim-fault {rehearsal.fault}")
    if rehearsal.speed != SIM_SPEED:
        raise NotSimulatedError(f"--sim-speed {rehearsal.speed:g}")
