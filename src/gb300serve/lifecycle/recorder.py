"""Record a launch from its announcements, without ever stopping it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gb300serve.boot.events import PhaseEntered, Receipt, TuningHit, TuningMiss
from gb300serve.core.errors import BackendError
from gb300serve.core.ports import Clock, Http, UnreachableError
from gb300serve.core.redaction import redact
from gb300serve.core.values import indented_json
from gb300serve.journal.journal import RunningLane, format_time
from gb300serve.journal.runs import LOG, METRICS, RECEIPTS, Run
from gb300serve.lifecycle.backend import LABEL_PLAN, Container, ContainerBackend, LogLine
from gb300serve.lifecycle.events import (
    Announcement,
    BecameReady,
    BootEvent,
    Elapsed,
    LogSeen,
    ReceiptsChecked,
    SharedMemoryRead,
    StepBegan,
    describe,
)
from gb300serve.lifecycle.launch import Launch, release_of
from gb300serve.lifecycle.receipts import verdict
from gb300serve.lifecycle.reconcile import is_live
from gb300serve.lifecycle.steps import AwaitReady

RECEIPTS_SCHEMA = "gb300serve.receipts/1"
# Hiding shorter values would hide half the log; they are not real secrets.
SHORTEST_SECRET = 4
METRICS_TIMEOUT = 1.0
# Searching a hundred lines for secrets costs as much as searching one: lines of this many seconds are written
# together, at the next silence at the latest.
TOGETHER = 0.25


class Recorder:
    """Writes the log, events and record of a run. A write error is reported once; then only the record is kept."""

    def __init__(
        self, run: Run, launch: Launch, backend: ContainerBackend, clock: Clock, warn: Callable[[str], None]
    ) -> None:
        self.run = run
        self._launch = launch
        self._backend = backend
        self._clock = clock
        self._warn = warn
        self._secrets = [value for value in launch.secrets.values() if len(value) >= SHORTEST_SECRET]
        self._visits: list[tuple[str, float]] = []
        self._receipts: list[dict[str, Any]] = []
        self._verdict: dict[str, Any] | None = None
        self._lines = 0
        self._pending: list[LogLine] = []
        self._written_at = clock.now()
        self._started_at = clock.now()
        self._at = 0.0
        self._lost_at: float | None = None

    def hear(self, announcement: Announcement) -> None:
        """Record one announcement."""
        if isinstance(announcement, LogSeen):
            self._record_line(announcement.line)
            return
        self._write_lines()
        if isinstance(announcement, Elapsed):
            self._at = announcement.seconds
        if isinstance(announcement, StepBegan) and isinstance(announcement.step, AwaitReady):
            self._learn_start(announcement.step.container)
            self.save(state="booting")
        if isinstance(announcement, BootEvent):
            self._record_event(announcement)
        if isinstance(announcement, ReceiptsChecked):
            self._keep_receipts(announcement)
        if isinstance(announcement, BecameReady):
            self._at = announcement.seconds
            self.save(state="ready", ready_seconds=announcement.seconds, verdict=self._verdict)
        if isinstance(announcement, SharedMemoryRead):
            self.save(shared_memory=self.clean(announcement.describe()))
        self._write_event(announcement)

    def learn(self, container: Container) -> None:
        """Note the container; the next save writes it."""
        self._started_at = container.began
        known = {"name": container.name, "id": container.id, "image_id": container.image_id}
        started = {} if container.started_at is None else {"started_at": format_time(container.started_at)}
        self.run.record = replace(self.run.record, container=known | started)

    def save(self, **changes: Any) -> None:
        """Change the record and write it."""
        log: dict[str, Any] = {"lines": self._lines, "complete": self._lost_at is None}
        if self._lost_at is not None:
            log["until"] = format_time(self._lost_at)
        self.run.record = replace(
            self.run.record, **{"receipts": tuple(self._receipts), "phases": self._phases(), "log": log, **changes}
        )
        self._guarded(self.run.save)

    def save_verdict(self, **more: Any) -> None:
        """Add to the verdict of a serving boot."""
        self.save(verdict={**(self.run.record.verdict or {}), **more})

    def keep_metrics(self, http: Http) -> None:
        """Save the engine's current metrics, if it answers."""
        try:
            response = http.get(f"{self._launch.endpoint.url}/metrics", METRICS_TIMEOUT)
        except UnreachableError:
            return
        if response.status == 200:
            text = response.text
            self._guarded(lambda: self.run.write(METRICS, text))

    def close(self, **changes: Any) -> None:
        """Finish the run; report again what is missing."""
        self._write_lines()
        self._guarded(self.run.release_reserve)
        self.save(ended=self._clock.now(), **changes)
        self._guarded(self.run.close)
        if self._lost_at is not None:
            self._warn(f"the log of this run is incomplete from {format_time(self._lost_at)} on: {self.run.path}/{LOG}")

    def clean(self, value: Any) -> Any:
        """The value without secrets, as JSON types."""
        if isinstance(value, str):
            return redact(value, self._secrets)
        if isinstance(value, dict):
            return {str(key): self.clean(item) for key, item in value.items()}
        return [self.clean(item) for item in value] if isinstance(value, list | tuple) else value

    def _record_line(self, line: LogLine) -> None:
        if line.elapsed < self._at - 1.0:  # its restart policy restarted it
            self._write_lines()
            self._learn_start(self.run.record.container_id or self._launch.name)
        self._at = line.elapsed
        if self._lost_at is None:
            self._pending.append(line)
        now = self._clock.now()
        if now - self._written_at >= TOGETHER:
            self._written_at = now
            self._write_lines()

    def _write_lines(self) -> None:
        if not self._pending:
            return
        lines = (f"{format_time(self._started_at + line.elapsed)} {line.text}" for line in self._pending)
        count, text = len(self._pending), str(self.clean("\n".join(lines)))
        self._pending.clear()
        self._guarded(lambda: self.run.log(text))
        self._lines += 0 if self._lost_at else count

    def _record_event(self, announcement: BootEvent) -> None:
        match announcement.event:
            case PhaseEntered(phase, at):
                self._visits.append((phase.value, at))
            case Receipt(name, values, text, at):
                self._receipts.append(self.clean({"name": name, "values": dict(values), "text": text, "at": at}))
            case TuningHit(configs, at):
                self._receipts.append({"name": "tuning", "values": {"loaded": configs, "missed": False}, "at": at})
            case TuningMiss(configs, at):
                self._receipts.append({"name": "tuning", "values": {"loaded": configs, "missed": True}, "at": at})
            case _:
                pass

    def _keep_receipts(self, checked: ReceiptsChecked) -> None:
        receipts = [self.clean(receipt.as_json()) for receipt in checked.receipts]
        self._receipts += receipts
        judged, name = verdict(checked.receipts, self._launch), (self.run.record.container or {}).get("name")
        self._verdict = {"message": "it serves", "hint": None, "reason": None, "receipts": judged}
        head = {"schema": RECEIPTS_SCHEMA, "release": self.run.record.ref, "container": name, "verdict": judged}
        text = indented_json({**head, "binding": checked.binding, "receipts": receipts}) + "\n"
        self._guarded(lambda: self.run.write(RECEIPTS, text))

    def _learn_start(self, container: str) -> None:
        try:
            found = self._backend.find(container)
        except BackendError:
            return
        if found is not None:
            self.learn(found)

    def _phases(self) -> tuple[tuple[str, float], ...]:
        ends = [at for _, at in self._visits[1:]] + [max(self._at, self._visits[-1][1]) if self._visits else 0.0]
        return tuple((name, end - at) for (name, at), end in zip(self._visits, ends, strict=False))

    def _write_event(self, announcement: Announcement) -> None:
        described = describe(announcement)
        if self._lost_at is None and described is not None:
            line = {"told": format_time(self._clock.now()), **self.clean(described)}
            self._guarded(lambda: self.run.event(line))

    def _guarded(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            if self._lost_at is not None:
                return
            self._lost_at = self._clock.now()
            self._warn(
                f"{self.run.path} can no longer be written ({error.strerror or error}): the launch continues, but its "
                f"log is incomplete from {format_time(self._lost_at)} on"
            )
            self._guarded(self.run.release_reserve)


def running_lanes(backend: ContainerBackend) -> tuple[RunningLane, ...]:
    """Our running containers; none if the backend does not answer."""
    try:
        found = backend.containers()
    except BackendError:
        return ()
    return tuple(running_lane(container) for container in found if container.ours and is_live(container))


def running_lane(container: Container) -> RunningLane:
    """The journal's view of one of our containers."""
    return RunningLane(release_of(container), container.name, container.id, container.labels.get(LABEL_PLAN, ""))


def lane_names(servings: tuple[RunningLane, ...]) -> str:
    """`deepseek-v4.1-flash/v14 (dsv41-vllm)`, or `nothing`."""
    return ", ".join(f"{lane.release} ({lane.container})" for lane in servings) or "nothing"
