"""Carrying out the steps of `up` and `rollback`: shown, locked, written down."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from gb300serve.adapters.signals import once
from gb300serve.cli.asking import LaunchRequest, expected_of, noticed, numbered, steps_of, usual_of
from gb300serve.cli.boot_view import BootView
from gb300serve.cli.console import Console
from gb300serve.cli.formats import text
from gb300serve.cli.keeping import Keeper, alone
from gb300serve.cli.services import Services
from gb300serve.cli.tuned import check_tuning, refuse_wrong_tuning
from gb300serve.core.errors import Gb300Error
from gb300serve.lifecycle.events import Announcement
from gb300serve.lifecycle.execute import Launched, execute
from gb300serve.lifecycle.failures import CrashLoopError, LaneEndedError, LaunchInterruptedError, LaunchOvertakenError
from gb300serve.lifecycle.following import tail
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.names import moment
from gb300serve.lifecycle.ports import Container
from gb300serve.lifecycle.ready import Served
from gb300serve.lifecycle.receipts import refuse_degraded
from gb300serve.lifecycle.recorder import Recorder
from gb300serve.lifecycle.serving import look_again
from gb300serve.lifecycle.steps import AwaitReady, Step, detached
from gb300serve.lifecycle.tools import Tools

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
        services.space.console.messages(text.lines(looked.found))
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
