"""The records of a command that changes containers: its run, and its entry in the journal."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace

from gb300serve.adapters.process import SystemProcesses
from gb300serve.app.environment import Console
from gb300serve.app.hosts import ContainerHost
from gb300serve.app.state import StateDirectory
from gb300serve.core.redaction import redact
from gb300serve.core.values import indented_json
from gb300serve.journal.journal import JournalEntry
from gb300serve.journal.lock import LaneLock
from gb300serve.journal.runs import UNFINISHED, UNWATCHED, RunRecord
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.receipts import pinned_files
from gb300serve.lifecycle.recorder import Recorder, running_lanes
from gb300serve.lifecycle.status import lane_status
from gb300serve.lifecycle.steps import Step, starts_kept
from gb300serve.render.docker_run import plan_document, shell_text

# Another command holds the lock for at most a minute (a stop takes 30 s), usually for one second.
LOCK_PATIENCE = 10.0


@contextmanager
def locked(lock: LaneLock, state: StateDirectory, console: Console) -> Iterator[LaneLock | None]:
    """Hold the lock of a container host; None, with a warning, if the state directory is not writable."""
    held: LaneLock | None = lock
    try:
        lock.acquire(LOCK_PATIENCE)
    except OSError as error:
        held = None
        console.message(
            f"{state.path} cannot be written ({error.strerror or error}): other commands are not locked out, "
            "and the journal will lack an entry",
            "warning",
        )
    try:
        yield held
    finally:
        lock.release()


class LaunchJournal:
    """The journal of one command: the lanes before it, and its changes."""

    def __init__(
        self, state: StateDirectory, host: ContainerHost, console: Console, station: str | None, verb: str
    ) -> None:
        self._state = state
        self._host = host
        self._console = console
        self._station = station
        self._verb = verb
        self.before = running_lanes(host.backend)

    def settle(self) -> None:
        """Write the missing entries of launches whose command was killed."""
        history = self._state.history()
        recorded = {entry.run for entry in history.entries}
        for record in history.runs:
            lacks = record.run not in recorded and record.state in {*UNFINISHED, "ready"}
            if record.on == self._host.on and (lacks or record.state in UNFINISHED) and self._is_dead(record):
                self._settle(record, lacks=lacks)
        self._mark_ready()

    def enter(
        self, result: str, text: str, *, reason: str | None, run: str | None = None, stopping: str | None = None
    ) -> None:
        """Add an entry about this command, with the lanes that run now.

        `stopping` is the id of a container whose stop was not awaited: it counts as stopped.
        """
        after = tuple(lane for lane in running_lanes(self._host.backend) if lane.id != stopping)
        self._add(
            JournalEntry(
                at=self._state.clock.now(),
                verb=self._verb,
                on=self._host.on,
                by=self._state.requester,
                result=result,
                said=redact(text),
                reason=redact(reason) if reason else None,
                before=self.before,
                after=after,
                run=run,
                station=self._station,
            )
        )
        self.before = after

    def begin(
        self, launch: Launch, steps: tuple[Step, ...], artifacts: Mapping[str, str], reason: str | None
    ) -> Recorder:
        """A run of this launch with its artifacts. Raises StateUnusableError."""
        state, plan = self._state, launch.plan
        record = RunRecord(
            run="",
            lane=plan.lane,
            release=launch.release,
            on=self._host.on,
            plan=launch.digest,
            verb=self._verb,
            by=state.requester,
            began=state.clock.now(),
            process=SystemProcesses().start_mark(os.getpid()),
            reason=redact(reason) if reason else None,
            overrides=tuple(map(redact, launch.overrides)),
            kept=starts_kept(steps),
            image=self._image(plan.image),
            patches={source: sha256 for source, _, sha256 in pinned_files(plan)} or None,
            station=self._station,
        )
        texts = {**artifacts, "plan.json": indented_json(plan_document(plan)) + "\n", "command": shell_text(plan)}
        run = state.runs.begin(record, {name: redact(text, launch.secrets.values()) for name, text in texts.items()})
        warn = self._console.message
        return Recorder(run, launch, self._host.backend, state.clock, lambda text: warn(text, "warning"))

    def _image(self, reference: str) -> dict[str, object]:
        found = self._host.backend.image(reference)
        known = {"id": found.id, "digests": list(found.digests)} if found else {}
        return {"reference": reference, **known}

    def _mark_ready(self) -> None:
        """A launch that was not watched counts as READY, a target of rollback, if it serves now."""
        last = {run.container_id: run for run in self._state.history().runs if run.on == self._host.on}
        tools = self._host.tools()
        for lane in self.before:
            record = last.get(lane.id)
            if record is None or record.state not in UNWATCHED or record.good:
                continue
            container = tools.backend.find(lane.id)
            if container and lane_status(container, tools).state == "ready":
                with suppress(OSError):  # the next write reports it
                    self._state.runs.rewrite(replace(record, state="ready"))

    def _is_dead(self, record: RunRecord) -> bool:
        """Processes of another host are invisible, so their runs are not changed."""
        same_host = record.by.host == self._state.requester.host
        return same_host and SystemProcesses().start_mark(record.by.pid) != record.process

    def _settle(self, record: RunRecord, *, lacks: bool) -> None:
        """`lacks`: the journal has no entry for the run."""
        ready, now = record.state == "ready", self._state.clock.now()
        if lacks:
            self._add(self._belated(record, now, "ready" if ready else "cut-short"))
        if not ready:
            with suppress(OSError):  # the next write reports it
                self._state.runs.rewrite(replace(record, state="cut-short", ended=now))

    def _belated(self, record: RunRecord, now: float, result: str) -> JournalEntry:
        last = self._state.history().last_change(self._host.on)
        became = f"{record.ref} became READY; " if result == "ready" else ""
        return JournalEntry(
            at=now,
            verb=record.verb,
            on=self._host.on,
            by=record.by,
            result=result,
            said=f"{became}its command was killed before it could record the result",
            reason=record.reason,
            before=last.after if last else (),
            after=self.before,
            run=record.run,
            station=record.station,
        )

    def _add(self, entry: JournalEntry) -> None:
        try:
            self._state.journal.add(entry)
        except OSError as error:
            self._console.message(
                f"{self._state.journal.path} lacks this change ({entry.verb}: {entry.result}): "
                f"{error.strerror or error}",
                "warning",
            )
