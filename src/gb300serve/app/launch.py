"""`up` and `rollback`: plan the steps, check the machine, execute the steps, watch the boot, record it."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from gb300serve.adapters.host import file_refusal, refusal
from gb300serve.adapters.system import once
from gb300serve.app.actions import Invocation, render_suggestions
from gb300serve.app.cache import CacheDirectories, ReleaseCache, mounted_cache
from gb300serve.app.doctor import NOTHING_BEARABLE, Doctor, PreflightResult, check_launch
from gb300serve.app.environment import Console
from gb300serve.app.hosts import SIM_SPEED, ContainerHost, Hosts, On
from gb300serve.app.launch_journal import LaunchJournal, locked
from gb300serve.app.launchable import PreparedLaunch
from gb300serve.app.probe import probe_run, probes_of
from gb300serve.app.state import StateDirectory
from gb300serve.autotune.pins import CacheVerdict
from gb300serve.autotune.sets import short_identity
from gb300serve.core.errors import Action, BackendError, CommandLineError, Gb300Error
from gb300serve.core.redaction import redact
from gb300serve.core.values import Missing, compact_json, indented_json
from gb300serve.fit.result import FitResult
from gb300serve.journal.journal import StateUnusableError
from gb300serve.journal.runs import HOST, MeasuredTimes, RunHistory, measure_times
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.events import Announcement, SharedMemoryRead
from gb300serve.lifecycle.execute import LaunchResult, execute
from gb300serve.lifecycle.failures import CrashLoopError, LaneEndedError, LaunchInterruptedError, LaunchOvertakenError
from gb300serve.lifecycle.launch import Launch, display_time
from gb300serve.lifecycle.logs import follow_lane
from gb300serve.lifecycle.ready import Served
from gb300serve.lifecycle.receipts import DegradedError, refuse_degraded
from gb300serve.lifecycle.reconcile import plan_launch
from gb300serve.lifecycle.recorder import Recorder
from gb300serve.lifecycle.status import verify_serving
from gb300serve.lifecycle.steps import Step, detached, runs_already, starts_kept
from gb300serve.lifecycle.tools import Tools
from gb300serve.preflight.subject import PreflightSubject
from gb300serve.simulator.station import Rehearsal

INTERRUPTED = 130
# GPU and host memory, as `fit` computes them.
_MEMORY = frozenset({"PRE030", "PRE031"})
_WRONG = frozenset({"missing", "differs"})


class BootDisplay(Protocol):
    """The screen of a launch."""

    serving: bool
    """Whether log lines of the engine are shown."""

    def show(self, announcement: Announcement) -> None: ...

    def stop(self) -> None:
        """End the live line: plain messages follow."""


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One command that launches."""

    prepared: PreparedLaunch
    verb: str
    command: str
    """Shown to other commands that wait for the lock."""
    describe_host: Callable[[PreflightSubject, Sequence[Any], str], dict[str, Any]]
    """The `doctor --json` object, which is stored with the run."""
    replace: bool = False
    detach: bool = False
    follow: bool = True
    names_back: bool = False
    reason: str | None = None
    preamble: tuple[str, ...] | None = None
    """Sentences to print with the steps before their execution."""

    @property
    def launch(self) -> Launch:
        return self.prepared.launch

    @property
    def invocation(self) -> Invocation:
        return self.prepared.invocation

    def host(self, hosts: Hosts) -> ContainerHost:
        """Where the containers run. Raises BackendError for an unreadable docker context."""
        return hosts.at(self.launch.on, self.launch.plan, self.prepared.recipe.memory)


class SimulatedOptionError(CommandLineError):
    """A simulation option on a real launch."""

    def __init__(self, option: str) -> None:
        message = f"{option} works on the simulated Station only, but this is a real launch"
        super().__init__(message, hint="add --on sim")


def refuse_rehearsal(rehearsal: Rehearsal, on: On) -> None:
    """Raises SimulatedOptionError (2) for simulation options on Docker."""
    if on == "sim":
        return
    if rehearsal.fault is not None:
        raise SimulatedOptionError(f"--sim-fault {rehearsal.fault}")
    if rehearsal.speed != SIM_SPEED:
        raise SimulatedOptionError(f"--sim-speed {rehearsal.speed:g}")


def plan_steps(launch: Launch, host: ContainerHost, *, replace: bool) -> tuple[Step, ...]:
    """Observe and decide; changes nothing. Raises MachineError (6) or BackendError (7)."""
    host.backend.check()
    return plan_launch(launch, host.tools(), replace=replace, listeners=host.listeners, neighbours=host.neighbours)


def preflight(request: LaunchRequest, steps: tuple[Step, ...], hosts: Hosts, state: StateDirectory) -> PreflightResult:
    """Raises MachineUnfitError (6). On the simulated Station memory only warns, and notes are not shown."""
    simulated = request.launch.on == "sim"
    doctor = Doctor(hosts.workspace, hosts, state, request.launch.on)
    result = check_launch(doctor, request.prepared, steps, _MEMORY if simulated else NOTHING_BEARABLE)
    if not simulated:
        return result
    return replace(result, found=tuple(finding for finding in result.found if finding.severity == "warning"))


def measured_times(launch: Launch, steps: tuple[Step, ...], history: RunHistory) -> MeasuredTimes:
    """The durations of earlier boots of this plan, of new or of kept containers."""
    return measure_times(history.runs, launch.digest, launch.on, kept=starts_kept(steps))


def expected_seconds(launch: Launch, steps: tuple[Step, ...], usual: MeasuredTimes) -> dict[str, float]:
    """By phase. The recipe's figures are of new containers; for a kept container, measured figures override them."""
    return {**launch.expected, **usual.phases} if starts_kept(steps) else {**usual.phases, **launch.expected}


def numbered(steps: tuple[Step, ...]) -> tuple[str, ...]:
    """One line per step."""
    return tuple(f"{number}. {step.describe()}" for number, step in enumerate(steps, 1))


def show_steps(request: LaunchRequest, hosts: Hosts, state: StateDirectory) -> tuple[str, ...]:
    """The lines of `--show-steps`, after the same checks and with the same errors as a launch."""
    runs, journal = state.runs.directory, state.journal.path
    for path, problem in ((runs, refusal(runs)), (journal, file_refusal(journal))):
        if problem is not None:
            raise StateUnusableError(path, problem)
    steps = plan_steps(request.launch, request.host(hosts), replace=request.replace)
    hosts.workspace.console.diagnostics(preflight(request, steps, hosts, state).found)
    return (*(request.preamble or ()), *numbered(steps))


def launch_and_watch(
    request: LaunchRequest, hosts: Hosts, state: StateDirectory, display: Callable[[dict[str, float]], BootDisplay]
) -> int:
    """Exit code: 0 if it already serves, was detached, ended on request or is not followed; 130 after Ctrl-C.

    `display` opens the screen of the boot for the expected seconds by phase.
    """
    state.runs.check()
    state.journal.check()
    console = hosts.workspace.console
    host = request.host(hosts)
    with once(), locked(state.lock(host.on, request.command), state, console) as lock:
        journal = LaunchJournal(state, host, console, hosts.workspace.station, request.verb)
        journal.settle()
        steps = plan_steps(request.launch, host, replace=request.replace)
        checked = preflight(request, steps, hosts, state)
        console.diagnostics(checked.found)
        usual = measured_times(request.launch, steps, state.history())
        launch = replace(request.launch, expected=expected_seconds(request.launch, steps, usual))
        if request.preamble is not None:
            console.messages((*request.preamble, *numbered(steps)))
        described = request.describe_host(checked.subject, checked.found, host.on)
        artifacts = {**request.prepared.artifacts, HOST: indented_json(described) + "\n"}
        recorder = journal.begin(launch, steps, artifacts, request.reason)
        screen = display(dict(launch.expected))
        try:
            tools = host.tools(_both(recorder, screen), lock)
            release = checked.subject.release
            memory = release.memory if release else None
            run = _Run(request, launch, hosts, state, tools, journal, recorder, screen, console, memory)
            return run.carry_out(detached(steps) if request.detach else steps)
        finally:
            screen.stop()


def _both(recorder: Recorder, screen: BootDisplay) -> Callable[[Announcement], None]:
    def announce(announcement: Announcement) -> None:
        recorder.hear(announcement)
        screen.show(announcement)

    return announce


@dataclass(slots=True)
class _Run:
    request: LaunchRequest
    launch: Launch
    hosts: Hosts
    state: StateDirectory
    tools: Tools
    journal: LaunchJournal
    recorder: Recorder
    screen: BootDisplay
    console: Console
    memory: FitResult | None
    """None if it is unknown."""

    def carry_out(self, steps: tuple[Step, ...]) -> int:
        """Raises the errors of `execute` after recording them, and DegradedError (9)."""
        try:
            launched = execute(steps, self.launch, self.tools, names_back=self.request.names_back)
        except Gb300Error as error:
            self._fail(error, _result(error))
            raise
        self.screen.stop()
        try:
            return self._serve(launched, steps)
        except KeyboardInterrupt:
            return self._leave()
        finally:
            self.tools.lock.release()

    def _serve(self, launched: LaunchResult, steps: tuple[Step, ...]) -> int:
        launch, served = self.launch, launched.served
        if served is not None and served.already:
            self.recorder.run.discard()  # its record would replace that of the launch that started the container
            notices = verify_serving(launched.container, launch, self.tools, self.state.history())
            self.console.messages(notices, "warning")
            return self._already("serves", launched.container)
        if not steps:  # detached and already running: readiness was not checked
            return self._already("runs", launched.container)
        result = "ready" if served else "started"
        text = f"{launch.plan.recipe} {'became READY' if served else 'boots'} as {launch.name}"
        self._enter(result, f"{text}; it was booting already" if runs_already(steps) else text)
        self.tools.lock.release()
        if served is None:
            self.recorder.learn(launched.container)
            self.recorder.close(state="started", exit={"tool": 0})
            self.console.message(f"{launch.name} boots; watch it with {self.request.invocation.command('up')}")
            return 0
        self.recorder.keep_metrics(self.tools.http)
        self._read_shared_memory(launched.container)
        verified = self._check_tuning()
        self.recorder.save_verdict(tuning=verified.state if verified else None)
        try:
            refuse_degraded(launch, served.receipts)
            refuse_wrong_tuning(verified, launch)
            if self.request.prepared.recipe.boot.probes == "short":
                self._probe()
        except Gb300Error as error:
            self._close(error)
            raise
        return self._follow(served) if self.request.follow else self._done()

    def _probe(self) -> None:
        """Raises DegradedError if the model answers wrongly."""
        plan, recipe = self.launch.plan, self.request.prepared.recipe
        run = probe_run(self.tools, self.launch.endpoint, plan.served_names, plan.command)
        wrong = []
        for result in run.results(probes_of(recipe, short=True)):
            self.console.message(f"probe: {result.sentence()}", "warning" if result.outcome == "failed" else "good")
            wrong += [result.sentence()] if result.outcome == "failed" else []
        if wrong:
            raise DegradedError(self.launch, "its model answers wrongly", wrong, Action("probe", "ask again"))

    def _read_shared_memory(self, container: Container) -> None:
        try:
            held = self.tools.backend.shared_memory(container.id)
        except BackendError as error:
            held = Missing(error.message)
        expected = self.memory.plan.host.resident_gib if self.memory else None
        self.tools.announce(SharedMemoryRead(held, expected))

    def _already(self, does: str, container: Container) -> int:
        self.recorder.run.discard()
        ref, url, since = self.request.invocation.ref, self.launch.endpoint.url, display_time(container.started_at)
        self.console.message(f"{ref} already {does}: {container.name}, at {url}, since {since}")
        return 0

    def _done(self) -> int:
        self.recorder.close(exit={"tool": 0})
        self.console.message(f"try it: {curl(self.launch)}")
        stop = self.request.invocation.command("down")
        self.console.message(f"serving at {self.launch.endpoint.url}; stop it with {stop}")
        return 0

    def _follow(self, served: Served) -> int:
        self.screen.serving = True
        self.console.message(f"try it: {curl(self.launch)}")
        self.console.message(f"serving at {self.launch.endpoint.url}; its log follows; Ctrl-C leaves it running")
        try:
            ended = follow_lane(served, self.launch, self.tools)
        except (LaneEndedError, CrashLoopError) as error:
            self._fail(error, "crash-loop" if isinstance(error, CrashLoopError) else "died")
            raise
        self.recorder.close(state="stopped", exit={"tool": 0, **_ending(ended)})
        self.console.message(f"{self.launch.name} was stopped" if ended else f"{self.launch.name} was removed")
        return 0

    def _leave(self) -> int:
        self.recorder.keep_metrics(self.tools.http)
        self.recorder.close(exit={"tool": INTERRUPTED})
        stop = self.request.invocation.command("down")
        self.console.message(f"\n{self.launch.name} keeps running; stop it with {stop}")
        return INTERRUPTED

    def _fail(self, error: Gb300Error, result: str) -> None:
        cause = redact(error.message.partition("\n")[0], self.launch.secrets.values())
        render_suggestions(error, self.request.invocation)
        self._enter(result, cause)
        self._close(error, state=result)

    def _enter(self, result: str, text: str) -> None:
        self.journal.enter(result, text, reason=self.request.reason, run=self.recorder.run.path.name)

    def _close(self, error: Gb300Error, **changes: object) -> None:
        render_suggestions(error, self.request.invocation)
        ending = getattr(error, "ending", None)
        verdict = {"message": error.message, "hint": error.hint}
        left = {}
        if ending is not None:
            verdict |= {"reason": ending.reason.value, "diagnosis": ending.diagnosis.as_json()}
            left = {"container": ending.exit_code, "oom_killed": ending.oom_killed, "kept_as": ending.container}
        known = self.recorder.clean({"verdict": verdict, "exit": {"tool": error.exit_code, **left}})
        self.recorder.close(**{**known, **changes})

    def _check_tuning(self) -> CacheVerdict | None:
        """The verdict of `cache verify` after READY; None if no set is expected. An unreadable cache only warns."""
        try:
            cache = _cache(self.request, self.hosts)
            verified = cache.verified() if cache else None
            expected = cache is not None and (cache.pin is not None or cache.expected.identity is not None)
        except Gb300Error as error:
            self.console.message(f"tuning cache: not verified: {error.message}", "warning")
            self.console.messages([f"  hint: {error.hint}"] if error.hint else [], "dim")
            return None
        if verified is None or not expected:
            return None
        for text, style in tuning_lines(verified):
            self.console.message(text, style)
        return verified


def curl(launch: Launch) -> str:
    """A request that can be pasted into a shell; the key is read from the variable of its secret."""
    endpoint = launch.endpoint
    body = compact_json({"model": launch.plan.served_names[0], "messages": [{"role": "user", "content": "Say hello."}]})
    key = ""
    if endpoint.api_key:
        variable = next((name for name, value in launch.secrets.items() if value == endpoint.api_key), "API_KEY")
        # That of a rehearsal is a stand-in, and no secret.
        key = f' -H "Authorization: Bearer {endpoint.api_key if launch.on == "sim" else f"${variable}"}"'
    header = "-H 'Content-Type: application/json'"
    return f"curl {endpoint.url}/v1/chat/completions {header}{key} -d {shlex.quote(body)}"


def refuse_wrong_tuning(verified: CacheVerdict | None, launch: Launch) -> None:
    """Raises DegradedError if the set is wrong and the recipe sets `missing: degrade`."""
    if verified is not None and verified.state in _WRONG and launch.tuning.degrades:
        differs, see = "its tuning set differs from the recipe", Action("cache verify", "see the tuning set")
        raise DegradedError(launch, differs, verified.remarks, see)


def tuning_lines(verified: CacheVerdict) -> Iterator[tuple[str, str]]:
    """Text and style: one line for the expected set, else one for each remark."""
    found = verified.found
    if verified.state == "ready" and found is not None and found.content is not None:
        identity, configs = short_identity(found.identity), found.content.configs
        yield f"tuning cache: {identity} as expected, {configs} configurations", "good"
    style = "warning" if verified.state in _WRONG else "dim"
    yield from ((f"tuning cache, for the next boot: {remark}", style) for remark in verified.remarks)


def _cache(request: LaunchRequest, hosts: Hosts) -> ReleaseCache | None:
    """None if the cache cannot be read from here, or if the container mounts none."""
    launch, prepared = request.launch, request.prepared
    if launch.overrides and not prepared.sets:
        return None  # a rolled-back `--set` launch: the release's record does not apply to it
    if not hosts.is_local(launch.on) or mounted_cache(launch.plan) is None:
        return None
    place = CacheDirectories(hosts, launch.on, request.invocation.command("cache verify"))
    return ReleaseCache(place, prepared.source, prepared.sets, prepared.recipe, launch.plan)


def _result(error: Gb300Error) -> str:
    if isinstance(error, LaunchOvertakenError):
        return "stopped"  # by another gb300serve command, so not a failure
    return "interrupted" if isinstance(error, LaunchInterruptedError) else "failed"


def _ending(container: Container | None) -> dict[str, object]:
    return {"container": container.exit_code, "oom_killed": container.oom_killed} if container else {}
