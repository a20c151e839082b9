"""The runs of this machine: one directory per launch, `<state>/runs/<UTC>-<lane>-<release>/`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

from gb300serve.journal import journal

SCHEMA = "gb300serve.run/1"
RunState = Literal[
    "launching", "booting", "ready", "started", "failed", "interrupted", "died", "stopped", "crash-loop", "cut-short"
]
UNFINISHED = frozenset({"launching", "booting"})
"""States of runs whose process lives."""
UNWATCHED = frozenset({"started", "interrupted", "cut-short"})
"""States of runs whose boot continued after their command had ended."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One launch. Times are seconds since 1970; `phases` and `ready_seconds` are in the container's own time."""

    run: str
    lane: str
    release: str
    on: str
    plan: str
    verb: str
    by: journal.Requester
    began: float
    state: RunState = "launching"
    process: str | None = None
    """The start mark of the launching process, as process ids are reused."""
    reason: str | None = None
    overrides: tuple[str, ...] = ()
    kept: bool = False
    """An existing container was started again, which is faster than a new one."""
    ended: float | None = None
    container: Mapping[str, Any] | None = None
    """`name`, `id`, `image_id`, `started_at`."""
    image: Mapping[str, Any] | None = None
    """`reference`, `id`, `digests`."""
    patches: Mapping[str, str] | None = None
    """sha256 by path of the mounted files that the plan pins."""
    ready_seconds: float | None = None
    shared_memory: Mapping[str, Any] | None = None
    """After READY: `held_gib` of pinned host memory, `expected_gib` of `fit`; `missing` states why nothing was read."""
    phases: tuple[tuple[str, float], ...] = ()
    receipts: tuple[Mapping[str, Any], ...] = ()
    verdict: Mapping[str, Any] | None = None
    """The outcome of the boot: message and hint, `receipts` if it serves, reason and diagnosis if it failed."""
    exit: Mapping[str, Any] | None = None
    """`tool`: exit code of the command; `container` and `oom_killed` if the container has ended."""
    log: Mapping[str, Any] | None = None
    """`lines`, `complete`, and `until` (UTC) if it is incomplete."""
    station: str | None = None
    """A name in the site's `stations`; None for the top level."""

    @property
    def ref(self) -> str:
        return f"{self.lane}/{self.release}"

    @property
    def good(self) -> bool:
        """Whether it has been READY at any time."""
        return self.ready_seconds is not None or self.state == "ready"

    @property
    def container_id(self) -> str | None:
        return journal.get_text(self.container or {}, "id")

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "by": asdict(self.by),
            "began": journal.format_time(self.began),
            "ended": None if self.ended is None else journal.format_time(self.ended),
            "phases": [{"name": name, "seconds": round(seconds, 3)} for name, seconds in self.phases],
        }


def parse_record(value: object) -> RunRecord | None:
    """Parse the content of `run.json`; None if it is not a run record."""
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        return None
    by, began = journal.parse_requester(value.get("by")), journal.parse_time(value.get("began"))
    if by is None or began is None:
        return None
    names = ("run", "lane", "release", "on", "plan", "verb")
    if not all(isinstance(value.get(name), str) for name in names):
        return None
    seconds = value.get("ready_seconds")
    optional: dict[str, Any] = {name: journal.get_text(value, name) for name in ("process", "reason", "station")}
    optional |= {
        name: value.get(name) for name in ("container", "image", "patches", "shared_memory", "verdict", "exit", "log")
    }
    return RunRecord(
        **{name: value[name] for name in names},
        **optional,
        by=by,
        began=began,
        state=value.get("state", "cut-short"),
        overrides=tuple(value.get("overrides") or ()),
        kept=value.get("kept") is True,
        ended=journal.parse_time(value.get("ended")),
        ready_seconds=float(seconds) if isinstance(seconds, int | float) else None,
        phases=tuple((str(phase["name"]), float(phase["seconds"])) for phase in value.get("phases") or ()),
        receipts=tuple(value.get("receipts") or ()),
    )


RECORD, LOG, EVENTS, METRICS = "run.json", "log.txt", "events.jsonl", "metrics.txt"
HOST, RECEIPTS = "host.json", "receipts.json"
RESERVE = ".room"
# Disk space reserved for the end of a run: even if the log fills the disk, the record (4 to 20 kB), vLLM's metrics
# (60 kB) and the journal entry can be written.
RESERVE_BYTES = 98304


class Run:
    """A run that is being recorded. `record` is written by `save`."""

    def __init__(self, path: Path, disk: journal.JournalDisk, record: RunRecord) -> None:
        self.path = path
        self.record = record
        self._disk = disk
        self._files: dict[str, journal.AppendFile] = {}
        self._sizes: dict[str, int] = {}

    def prepare(self, artifacts: Mapping[str, str]) -> None:
        """Write what is known before the launch; if that fails, the directory is removed."""
        try:
            for name, text in artifacts.items():
                self.write(name, text)
            self._append(RESERVE, b"\0" * RESERVE_BYTES)
            self.save()
        except OSError:
            self.discard()
            raise

    def write(self, name: str, text: str) -> None:
        self._disk.replace(self.path / name, encode(text))

    def save(self) -> None:
        self.write(RECORD, json.dumps(self.record.as_json(), indent=2, ensure_ascii=False) + "\n")

    def log(self, lines: str) -> None:
        """Append lines of the container's log (without the last line feed), all or none."""
        self._append(LOG, encode(lines + "\n"))

    def event(self, event: Mapping[str, Any]) -> None:
        self._append(EVENTS, encode(json.dumps(event, ensure_ascii=False, default=str) + "\n"))

    def release_reserve(self) -> None:
        """Free the reserved disk space."""
        self._close(RESERVE)
        self._disk.remove(self.path / RESERVE)

    def close(self) -> None:
        """Sync and close all files."""
        for name, file in tuple(self._files.items()):
            try:
                file.sync()
            finally:
                self._close(name)

    def discard(self) -> None:
        """Remove the directory, as nothing was launched."""
        for name in tuple(self._files):
            self._close(name)
        with suppress(OSError):
            self._disk.remove(self.path)

    def _append(self, name: str, data: bytes) -> None:
        if name not in self._files:
            self._files[name] = self._disk.open(self.path / name)
        size = self._sizes.get(name, 0)
        try:
            self._files[name].write(data)
        except OSError:
            with suppress(OSError):
                self._disk.truncate(self.path / name, size)
            raise
        self._sizes[name] = size + len(data)

    def _close(self, name: str) -> None:
        if (file := self._files.pop(name, None)) is not None:
            with suppress(OSError):
                file.close()


def encode(text: str) -> bytes:
    """UTF-8; bytes that are not UTF-8 (in file names) are escaped."""
    return text.encode("utf-8", "backslashreplace")


DIRECTORY = "runs"


class Runs:
    """The runs of a state directory."""

    def __init__(self, state: Path, disk: journal.JournalDisk) -> None:
        self.directory = state / DIRECTORY
        self._disk = disk

    def check(self) -> None:
        """Raises StateUnusableError if no run could be recorded."""
        probe = self.directory / ".check"
        try:
            self._disk.make(self.directory)
            self._disk.replace(probe, b"x" * 4096)
            self._disk.remove(probe)
        except OSError as error:
            raise journal.StateUnusableError(self.directory, error.strerror or str(error)) from error

    def begin(self, record: RunRecord, artifacts: Mapping[str, str]) -> Run:
        """Create the run's directory with `artifacts` (texts by file name); sets `record.run`."""
        try:
            self._disk.make(self.directory)
            path = self._claim(f"{journal.format_stamp(record.began)}-{record.lane}-{record.release}")
            run = Run(path, self._disk, replace(record, run=path.name))
            run.prepare(artifacts)
        except OSError as error:
            raise journal.StateUnusableError(self.directory, error.strerror or str(error)) from error
        return run

    def all(self) -> tuple[RunRecord, ...]:
        """All readable records, oldest first. Raises OSError."""
        records = (self.read(name) for name in self._names())
        return tuple(sorted((record for record in records if record), key=lambda record: record.began))

    def damaged(self) -> tuple[str, ...]:
        """The names of runs with an unreadable record. Raises OSError."""
        contents = ((name, self._content(name)) for name in self._names())
        return tuple(name for name, content in contents if content and _record(name, content) is None)

    def read(self, name: str) -> RunRecord | None:
        """The record of one run; None if it is missing or unreadable."""
        content = self._content(name)
        return _record(name, content) if content else None

    def _names(self) -> Iterator[str]:
        return (name for name in self._disk.names(self.directory) if not name.startswith("."))

    def _content(self, name: str) -> bytes | None:
        return self._disk.read(self.directory / name / RECORD)

    def rewrite(self, record: RunRecord) -> None:
        """Write the record of a run whose process has ended. Raises OSError."""
        Run(self.directory / record.run, self._disk, record).save()

    def _claim(self, name: str) -> Path:
        """Create a directory; a second launch in the same second gets a number."""
        number = 1
        while not self._disk.claim(path := self.directory / (name if number == 1 else f"{name}-{number}")):
            number += 1
        return path


def _record(name: str, content: bytes) -> RunRecord | None:
    try:
        record = parse_record(json.loads(content))
    except (ValueError, KeyError, TypeError):
        return None
    return replace(record, run=name) if record else None


# The journal entry follows the end of the container by some seconds, after a SIGKILL by thirty.
_ENTRY_DELAY = 60.0


@dataclass(frozen=True, slots=True)
class RunHistory:
    """Entries and runs, oldest first."""

    entries: tuple[journal.JournalEntry, ...] = ()
    runs: tuple[RunRecord, ...] = ()

    def last_change(self, on: str) -> journal.JournalEntry | None:
        """The last change on this backend: its `after` are the lanes that should run."""
        return next((entry for entry in reversed(self.entries) if entry.on == on), None)

    def is_expected_to_run(self, container: str, on: str) -> bool:
        """Whether the container (by id) should run according to the journal."""
        last = self.last_change(on)
        return last is not None and container in _ids(last.after)

    def running_since(self, container: str, on: str) -> float | None:
        """Since when (seconds since 1970) the journal lists the container (by id) as running; None if it does not."""
        since = None
        for entry in reversed(self.entries):
            if entry.on == on:
                if container not in _ids(entry.after):
                    break
                since = entry.at
        return since

    def has_been_ready(self, container: str, since: float) -> bool:
        """Whether the container (by id) became READY in a launch or a rollback since then."""
        other_runs = {run.run for run in self.runs if run.container_id != container}
        entries = (entry for entry in self.entries if entry.result == "ready" and entry.at >= since)
        return any(container in _ids(entry.after) and entry.run not in other_runs for entry in entries)

    def has_unfinished_launch(self, on: str) -> bool:
        """Whether a launch that began after the last change has not recorded its outcome yet."""
        last = self.last_change(on)
        began = (run.began for run in self.runs if run.on == on and run.state in UNFINISHED)
        return any(last is None or at > last.at for at in began)

    def is_stopped_on_request(self, container: str, finished_at: float | None) -> bool:
        """Whether a command stopped or removed the container (by id), when it ended or later."""
        for entry in reversed(self.entries):
            before, after = _ids(entry.before), _ids(entry.after)
            if container in after:
                return False
            if container in before:
                return entry.result != "died" and (finished_at is None or entry.at > finished_at - _ENTRY_DELAY)
        return False

    def last_good(self, lane: str, on: str, *, other_than: str | None, release: str | None = None) -> RunRecord | None:
        """The last run of the lane that was READY, with another plan than `other_than`; if given, of `release`."""
        good = (run for run in reversed(self.runs) if (run.lane, run.on, run.good) == (lane, on, True))
        return next((run for run in good if run.plan != other_than and release in (None, run.release)), None)


def _ids(lanes: Iterable[journal.RunningLane]) -> set[str]:
    return {lane.id for lane in lanes}


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """Medians over `runs` boots: seconds by phase (repeated phases are added up), and seconds until READY."""

    runs: int = 0
    phases: Mapping[str, float] = field(default_factory=dict)
    total: float | None = None


def measure_times(records: Iterable[RunRecord], plan: str, on: str, *, kept: bool) -> MeasuredTimes:
    """Measured over READY boots of new or of kept containers: 8 minutes and 4 to 5 minutes on the Station."""
    alike = (run for run in records if (run.plan, run.on, run.kept) == (plan, on, kept))
    boots = [run for run in alike if run.ready_seconds is not None]
    if not boots:
        return MeasuredTimes()
    seconds: dict[str, list[float]] = {}
    for boot in boots:
        for name in dict.fromkeys(name for name, _ in boot.phases):
            seconds.setdefault(name, []).append(sum(spent for phase, spent in boot.phases if phase == name))
    totals = [boot.ready_seconds for boot in boots if boot.ready_seconds is not None]
    return MeasuredTimes(len(boots), {name: median(spent) for name, spent in seconds.items()}, median(totals))
