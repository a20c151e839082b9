"""What a command that changes what serves writes down: its run, and its entry in the journal."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from gb300serve.adapters.process import SystemProcesses
from gb300serve.app.doctor import Looked
from gb300serve.app.services import On, Services
from gb300serve.cli.views.doctor import document
from gb300serve.core.redaction import redact
from gb300serve.core.values import indented_json
from gb300serve.journal.journal import JournalEntry, RunningLane
from gb300serve.journal.lock import LaneLock
from gb300serve.journal.runs import HOST, UNFINISHED, UNWATCHED, RunRecord
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.recorder import Recorder, serving
from gb300serve.lifecycle.status import lane_status
from gb300serve.lifecycle.steps import StartContainer, Step
from gb300serve.render.docker_run import plan_document, shell_text

# Another command changes containers for a minute at most (a stop takes 30 s); most are done in one second.
LOCK_PATIENCE = 10.0


@contextmanager
def alone(lock: LaneLock, services: Services) -> Iterator[LaneLock | None]:
    """Holding the lock; a state directory that cannot be written is said, and nothing is refused for it."""
    held: LaneLock | None = lock
    try:
        lock.acquire(LOCK_PATIENCE)
    except OSError as error:
        held = None
        services.space.console.message(
            f"{services.state} cannot be written ({error.strerror or error}): other commands cannot be kept out, "
            "and the journal will lack an entry",
            "warning",
        )
    try:
        yield held
    finally:
        lock.release()


class Keeper:
    """One command's: what served before it, and what came of it."""

    def __init__(self, services: Services, on: On, verb: str, reason: str | None) -> None:
        self._services = services
        self._on = on
        self._verb = verb
        self._reason = redact(reason) if reason else None
        self.before = self._serving()

    def settle(self) -> None:
        """Give the launches whose command was killed their entry: nobody else will."""
        history = self._services.history()
        told = {entry.run for entry in history.entries}
        for record in history.runs:
            lacks = record.run not in told and record.state in {*UNFINISHED, "ready"}
            if record.on == self._on and (lacks or record.state in UNFINISHED) and self._is_dead(record):
                self._settle(record, lacks=lacks)
        self._see_who_serves()

    def enter(self, result: str, said: str, run: str | None = None, secrets: tuple[str, ...] = ()) -> None:
        """One entry about this command; what serves afterwards is looked up."""
        self._enter(result, redact(said, secrets), self._serving(), run)

    def enter_asked_to_end(self, container: str, said: str) -> None:
        """A stop that was asked for and not waited for: the container (by id) is to serve no more."""
        self._enter("interrupted", said, tuple(each for each in self._serving() if each.id != container))

    def _enter(self, result: str, said: str, after: tuple[RunningLane, ...], run: str | None = None) -> None:
        self._add(
            JournalEntry(
                at=self._services.clock.now(),
                verb=self._verb,
                on=self._on,
                by=self._services.asker,
                result=result,
                said=said,
                reason=self._reason,
                before=self.before,
                after=after,
                run=run,
                station=self._services.space.station,
            )
        )
        self.before = after

    def begin(self, launch: Launch, steps: tuple[Step, ...], looked: Looked) -> Recorder:
        """A run of this launch, with what preflight looked at. Raises StateUnusableError."""
        services = self._services
        plan = launch.plan
        pins = {mount.source: mount.sha256 for mount in plan.container.mounts if isinstance(mount.sha256, str)}
        below = {
            f"{mount.source}/{name}": digest
            for mount in plan.container.mounts
            if isinstance(mount.sha256, dict)
            for name, digest in mount.sha256.items()
        }
        record = RunRecord(
            run="",
            lane=plan.lane,
            release=launch.release,
            on=self._on,
            plan=launch.digest,
            verb=self._verb,
            by=services.asker,
            began=services.clock.now(),
            process=SystemProcesses().start_mark(os.getpid()),
            reason=self._reason,
            overrides=tuple(redact(each) for each in launch.overrides),
            kept=any(isinstance(step, StartContainer) and step.kept for step in steps),
            image=self._image(launch),
            patches={**pins, **below} or None,
            station=services.space.station,
        )
        backend, console = services.backend(self._on), services.space.console
        papers = {name: redact(text, launch.secrets.values()) for name, text in _papers(launch, looked).items()}
        run = services.runs.begin(record, papers)
        return Recorder(run, launch, backend, services.clock, lambda text: console.message(text, "warning"))

    def _image(self, launch: Launch) -> dict[str, object]:
        found = self._services.backend(self._on).image(launch.plan.image)
        known = {"id": found.id, "digests": list(found.digests)} if found else {}
        return {"reference": launch.plan.image, **known}

    def _serving(self) -> tuple[RunningLane, ...]:
        return serving(self._services.backend(self._on))

    def _see_who_serves(self) -> None:
        """A launch that nobody watched to its end is READY too, if it serves now: what may be returned to later."""
        last = {each.container_id: each for each in self._services.history().runs if each.on == self._on}
        tools = self._services.tools(self._on)
        for served in self.before:
            record = last.get(served.id)
            container = (
                tools.backend.find(served.id) if record and record.state in UNWATCHED and not record.good else None
            )
            if record and container and lane_status(container, tools).state == "ready":
                with suppress(OSError):  # it is said where the next thing is written
                    self._services.runs.rewrite(replace(record, state="ready"))

    def _is_dead(self, record: RunRecord) -> bool:
        """Processes of another host cannot be seen: what is theirs stays as it is."""
        same_host = record.by.host == self._services.asker.host
        return same_host and SystemProcesses().start_mark(record.by.pid) != record.process

    def _settle(self, record: RunRecord, *, lacks: bool) -> None:
        """`lacks`: the journal has no entry of it."""
        ready, now = record.state == "ready", self._services.clock.now()
        if lacks:
            self._add(self._belated(record, now, "ready" if ready else "cut-short"))
        if ready:
            return
        try:
            self._services.runs.rewrite(replace(record, state="cut-short", ended=now))
        except OSError:
            return  # it is said where the next thing is written

    def _belated(self, record: RunRecord, now: float, result: str) -> JournalEntry:
        last = self._services.history().serving(self._on)
        became = f"{record.ref} became READY; " if result == "ready" else ""
        return JournalEntry(
            at=now,
            verb=record.verb,
            on=self._on,
            by=record.by,
            result=result,
            said=f"{became}its command was killed before it could write down what came of it",
            reason=record.reason,
            before=last.after if last else (),
            after=self.before,
            run=record.run,
            station=record.station,
        )

    def _add(self, entry: JournalEntry) -> None:
        try:
            self._services.journal.add(entry)
        except OSError as error:
            self._services.space.console.message(
                f"{self._services.journal.path} lacks this change ({entry.verb}: {entry.result}): "
                f"{error.strerror or error}",
                "warning",
            )


def _papers(launch: Launch, looked: Looked) -> dict[str, str]:
    """What is known before a launch, as texts by file name."""
    return {
        **launch.papers,
        "plan.json": indented_json(plan_document(launch.plan)) + "\n",
        "command": shell_text(launch.plan),
        HOST: indented_json(document(looked.subject, looked.found, launch.on)) + "\n",
    }
