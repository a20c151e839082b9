"""The runs of this machine: a directory for each launch, `<state>/runs/<UTC>-<lane>-<release>/`."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from gb300serve.journal.journal import (
    AppendFile,
    JournalDisk,
    Requester,
    StateUnusableError,
    format_stamp,
    format_time,
    get_text,
    parse_requester,
    parse_time,
)

SCHEMA = "gb300serve.run/1"
RunState = Literal[
    "launching", "booting", "ready", "started", "failed", "interrupted", "died", "stopped", "crash-loop", "cut-short"
]
UNFINISHED = frozenset({"launching", "booting"})
"""States that only a run whose process lives can have."""
UNWATCHED = frozenset({"started", "interrupted", "cut-short"})
"""States of a run whose boot went on when its command had ended."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One launch. Times are seconds since 1970; `phases` and `ready_seconds` are in the container's own time."""

    run: str
    lane: str
    release: str
    on: str
    plan: str
    verb: str
    by: Requester
    began: float
    state: RunState = "launching"
    process: str | None = None
    """The mark of the process that launched it: ids alone are used again."""
    reason: str | None = None
    overrides: tuple[str, ...] = ()
    kept: bool = False
    """A container that was there was started again: quicker than a fresh one."""
    ended: float | None = None
    container: Mapping[str, Any] | None = None
    """`name`, `id`, `image_id`, `started_at`."""
    image: Mapping[str, Any] | None = None
    """`reference`, `id`, `digests`."""
    patches: Mapping[str, str] | None = None
    """sha256 by path of the mounted files whose content the plan pins."""
    ready_seconds: float | None = None
    phases: tuple[tuple[str, float], ...] = ()
    receipts: tuple[Mapping[str, Any], ...] = ()
    verdict: Mapping[str, Any] | None = None
    """What became of the boot: message and hint; `receipts` where it serves, reason and diagnosis where it failed."""
    exit: Mapping[str, Any] | None = None
    """`tool`: exit code of the command; `container` and `oom_killed` where it has ended."""
    log: Mapping[str, Any] | None = None
    """`lines`, `complete`, and `until` (UTC) where it is not."""
    station: str | None = None
    """A name in the site's `stations`; None for its top level."""

    @property
    def ref(self) -> str:
        return f"{self.lane}/{self.release}"

    @property
    def good(self) -> bool:
        """It has been READY, whatever came later."""
        return self.ready_seconds is not None or self.state == "ready"

    @property
    def container_id(self) -> str | None:
        return get_text(self.container or {}, "id")

    def as_json(self) -> dict[str, Any]:
        """`gb300serve.run/1`."""
        return {
            "schema": SCHEMA,
            "run": self.run,
            "lane": self.lane,
            "release": self.release,
            "on": self.on,
            "plan": self.plan,
            "verb": self.verb,
            "by": {"user": self.by.user, "host": self.by.host, "pid": self.by.pid},
            "process": self.process,
            "reason": self.reason,
            "overrides": list(self.overrides),
            "kept": self.kept,
            "began": format_time(self.began),
            "ended": None if self.ended is None else format_time(self.ended),
            "state": self.state,
            "container": self.container,
            "image": self.image,
            "patches": self.patches,
            "ready_seconds": self.ready_seconds,
            "phases": [{"name": name, "seconds": round(seconds, 3)} for name, seconds in self.phases],
            "receipts": list(self.receipts),
            "verdict": self.verdict,
            "exit": self.exit,
            "log": self.log,
            "station": self.station,
        }


def parse_record(value: object) -> RunRecord | None:
    """From `run.json`; None where it is none of ours."""
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        return None
    by, began = parse_requester(value.get("by")), parse_time(value.get("began"))
    if by is None or began is None:
        return None
    names = ("run", "lane", "release", "on", "plan", "verb")
    if not all(isinstance(value.get(name), str) for name in names):
        return None
    seconds = value.get("ready_seconds")
    return RunRecord(
        **{name: value[name] for name in names},
        by=by,
        began=began,
        state=value.get("state", "cut-short"),
        process=get_text(value, "process"),
        reason=get_text(value, "reason"),
        overrides=tuple(value.get("overrides") or ()),
        kept=value.get("kept") is True,
        ended=parse_time(value.get("ended")),
        container=value.get("container"),
        image=value.get("image"),
        patches=value.get("patches"),
        ready_seconds=float(seconds) if isinstance(seconds, int | float) else None,
        phases=tuple((str(one["name"]), float(one["seconds"])) for one in value.get("phases") or ()),
        receipts=tuple(value.get("receipts") or ()),
        verdict=value.get("verdict"),
        exit=value.get("exit"),
        log=value.get("log"),
        station=get_text(value, "station"),
    )


RECORD, LOG, EVENTS, METRICS = "run.json", "log.txt", "events.jsonl", "metrics.txt"
HOST, RECEIPTS = "host.json", "receipts.json"
ROOM = ".room"
# Kept free for the last words: when the log has filled the disk, the record, the metrics and the journal's entry still
# find room (a record takes 4 to 20 kB, vLLM's metrics 60 kB).
ROOM_BYTES = 98304


class Run:
    """`record` is as it was last saved or is to be saved next."""

    def __init__(self, path: Path, disk: JournalDisk, record: RunRecord) -> None:
        self.path = path
        self.record = record
        self._disk = disk
        self._tapes: dict[str, AppendFile] = {}
        self._sizes: dict[str, int] = {}

    def prepare(self, papers: Mapping[str, str]) -> None:
        """Write what is known before the launch. Nothing stays of it when that fails."""
        try:
            for name, text in papers.items():
                self.write(name, text)
            self._append(ROOM, b"\0" * ROOM_BYTES)
            self.save()
        except OSError:
            self.discard()
            raise

    def write(self, name: str, text: str) -> None:
        """A file, whole or not at all."""
        self._disk.replace(self.path / name, encode(text))

    def save(self) -> None:
        """The record, whole or not at all."""
        self.write(RECORD, json.dumps(self.record.as_json(), indent=2, ensure_ascii=False) + "\n")

    def log(self, lines: str) -> None:
        """Lines of the container's log, without the last line feed; a part of them is never left behind."""
        self._append(LOG, encode(lines + "\n"))

    def event(self, event: Mapping[str, Any]) -> None:
        """Something that happened, as a line of events.jsonl."""
        self._append(EVENTS, encode(json.dumps(event, ensure_ascii=False, default=str) + "\n"))

    def make_room(self) -> None:
        """Give back what was kept free."""
        self._close(ROOM)
        self._disk.remove(self.path / ROOM)

    def close(self) -> None:
        """Bring everything to the disk."""
        for name in tuple(self._tapes):
            tape = self._tapes[name]
            try:
                tape.sync()
            finally:
                self._close(name)

    def discard(self) -> None:
        """Remove it: nothing was launched."""
        for name in tuple(self._tapes):
            self._close(name)
        with suppress(OSError):
            self._disk.remove(self.path)

    def _append(self, name: str, data: bytes) -> None:
        if name not in self._tapes:
            self._tapes[name] = self._disk.open(self.path / name)
        size = self._sizes.get(name, 0)
        try:
            self._tapes[name].write(data)
        except OSError:
            with suppress(OSError):
                self._disk.truncate(self.path / name, size)
            raise
        self._sizes[name] = size + len(data)

    def _close(self, name: str) -> None:
        tape = self._tapes.pop(name, None)
        if tape is not None:
            with suppress(OSError):
                tape.close()


def encode(text: str) -> bytes:
    """UTF-8; what has no UTF-8 (a file name that is none) is written escaped."""
    return text.encode("utf-8", "backslashreplace")


DIRECTORY = "runs"


class Runs:
    """In the state directory."""

    def __init__(self, state: Path, disk: JournalDisk) -> None:
        self.directory = state / DIRECTORY
        self._disk = disk

    def check(self) -> None:
        """Raises StateUnusableError unless a run could be begun."""
        probe = self.directory / ".check"
        try:
            self._disk.make(self.directory)
            self._disk.replace(probe, b"x" * 4096)
            self._disk.remove(probe)
        except OSError as error:
            raise StateUnusableError(self.directory, error.strerror or str(error)) from error

    def begin(self, record: RunRecord, papers: Mapping[str, str]) -> Run:
        """Its directory with `papers` (texts by file name) in it; `record.run` is given here."""
        try:
            self._disk.make(self.directory)
            path = self._claimed(f"{format_stamp(record.began)}-{record.lane}-{record.release}")
            run = Run(path, self._disk, replace(record, run=path.name))
            run.prepare(papers)
        except OSError as error:
            raise StateUnusableError(self.directory, error.strerror or str(error)) from error
        return run

    def all(self) -> tuple[RunRecord, ...]:
        """The oldest first; a directory without a record that can be read is left out. Raises OSError."""
        found = (self.read(name) for name in self._names())
        return tuple(sorted((each for each in found if each), key=lambda each: each.began))

    def damaged(self) -> tuple[str, ...]:
        """Runs whose record is there and cannot be read. Raises OSError."""
        found = ((name, self._content(name)) for name in self._names())
        return tuple(name for name, content in found if content and _record(name, content) is None)

    def read(self, name: str) -> RunRecord | None:
        """The record of one run."""
        content = self._content(name)
        return _record(name, content) if content else None

    def _names(self) -> Iterator[str]:
        return (name for name in self._disk.names(self.directory) if not name.startswith("."))

    def _content(self, name: str) -> bytes | None:
        return self._disk.read(self.directory / name / RECORD)

    def rewrite(self, record: RunRecord) -> None:
        """For a run whose own process is gone. Raises OSError."""
        Run(self.directory / record.run, self._disk, record).save()

    def _claimed(self, name: str) -> Path:
        """Two launches of a second get two directories."""
        number = 1
        while not self._disk.claim(path := self.directory / (name if number == 1 else f"{name}-{number}")):
            number += 1
        return path


def _record(name: str, content: bytes) -> RunRecord | None:
    try:
        found = parse_record(json.loads(content))
    except (ValueError, KeyError, TypeError):
        return None
    return replace(found, run=name) if found else None
