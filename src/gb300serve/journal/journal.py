"""The journal: a file of JSON lines that only grows. What was written stays, whatever kills the writer."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from gb300serve.core.errors import MachineError
from gb300serve.core.ports import Clock


def format_time(at: float) -> str:
    """Seconds since 1970 as `2026-11-29T19:50:03.123Z`."""
    milliseconds = round(at * 1000)
    return f"{_second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"


@lru_cache(maxsize=64)
def _second(whole: int) -> str:
    """Lines of a log come by the thousand a second."""
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def parse_time(text: object) -> float | None:
    """The same back; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def format_stamp(at: float) -> str:
    """Seconds since 1970 as `20261129T195003Z`: for names."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%SZ")


@dataclass(frozen=True, slots=True)
class Requester:
    """Who asked for a change."""

    user: str
    host: str
    pid: int

    def __str__(self) -> str:
        return f"{self.user}@{self.host}, process {self.pid}"


@dataclass(frozen=True, slots=True)
class RunningLane:
    """A container of ours that runs (it may still boot). `release` is `lane/release` as labelled."""

    release: str
    container: str
    """Its name."""
    id: str
    plan: str
    """Digest of its plan."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """`result`: ready, started, failed, interrupted, stopped, removed, died, crash-loop, cut-short."""

    at: float
    """Seconds since 1970."""
    verb: str
    on: str
    by: Requester
    result: str
    said: str = ""
    """What came of it, in a sentence."""
    reason: str | None = None
    """Why, where the user said it."""
    before: tuple[RunningLane, ...] = ()
    after: tuple[RunningLane, ...] = ()
    run: str | None = None
    station: str | None = None
    """A name in the site's `stations`; None for its top level."""

    def as_json(self) -> dict[str, Any]:
        """One line of the journal, and one object of `journal --json`."""
        return {
            "at": format_time(self.at),
            "verb": self.verb,
            "on": self.on,
            "by": {"user": self.by.user, "host": self.by.host, "pid": self.by.pid},
            "from": [_serving(each) for each in self.before],
            "to": [_serving(each) for each in self.after],
            "result": self.result,
            "said": self.said,
            "reason": self.reason,
            "run": self.run,
            "station": self.station,
        }


def parse_entry(value: object) -> JournalEntry | None:
    """From a line; None where it is none of ours. Keys that a later version adds are passed over."""
    if not isinstance(value, dict) or (at := parse_time(value.get("at"))) is None:
        return None
    texts = [value.get(key) for key in ("verb", "on", "result")]
    by = parse_requester(value.get("by"))
    if by is None or not all(isinstance(text, str) for text in texts):
        return None
    verb, place, result = map(str, texts)
    return JournalEntry(
        at=at,
        verb=verb,
        on=place,
        by=by,
        result=result,
        said=str(value.get("said") or ""),
        reason=get_text(value, "reason"),
        before=_all_serving(value.get("from")),
        after=_all_serving(value.get("to")),
        run=get_text(value, "run"),
        station=get_text(value, "station"),
    )


def parse_requester(value: object) -> Requester | None:
    """From `{"user", "host", "pid"}`."""
    if not isinstance(value, dict) or not isinstance(value.get("pid"), int):
        return None
    return Requester(str(value.get("user")), str(value.get("host")), value["pid"])


def get_text(value: Mapping[str, Any], key: str) -> str | None:
    """A text, or None where there is another thing."""
    found = value.get(key)
    return found if isinstance(found, str) else None


def _serving(each: RunningLane) -> dict[str, str]:
    return {"release": each.release, "container": each.container, "id": each.id, "plan": each.plan}


def _all_serving(value: object) -> tuple[RunningLane, ...]:
    each = value if isinstance(value, list) else []
    names = ("release", "container", "id", "plan")
    return tuple(RunningLane(*(str(one.get(name)) for name in names)) for one in each if isinstance(one, dict))


class AppendFile(Protocol):
    """A file that only grows. `write` and `sync` may raise OSError."""

    def write(self, data: bytes) -> None:
        """All of it, or as much as fits before the error."""

    def sync(self) -> None: ...

    def close(self) -> None: ...


class HeldLock(Protocol):
    """A lock that is held; the system lets go of it when the process dies, however it dies."""

    def release(self) -> None: ...


class JournalDisk(Protocol):
    """Every call may raise OSError. Files are readable by their user alone (0600, directories 0700)."""

    def make(self, directory: Path) -> None:
        """The directory and those above it; nothing where it is there."""

    def claim(self, directory: Path) -> bool:
        """Make it; False where something has its name."""

    def names(self, directory: Path) -> tuple[str, ...]:
        """What is in it, sorted; nothing where it is not there."""

    def read(self, path: Path) -> bytes | None:
        """None where it is not there."""

    def open(self, path: Path) -> AppendFile:
        """To append to it; made where it is not there."""

    def replace(self, path: Path, data: bytes) -> None:
        """Whole, or not at all: a reader sees the old content or the new."""

    def overwrite(self, path: Path, data: bytes) -> None:
        """In place, for a file that is locked: its readers must expect half of it."""

    def truncate(self, path: Path, size: int) -> None: ...

    def remove(self, path: Path) -> None:
        """A file, or a directory with all that is in it; nothing where it is not there."""

    def try_hold(self, path: Path) -> HeldLock | None:
        """Lock the file (made where it is not there); None while another holds it."""


class StateUnusableError(MachineError):
    """Nothing that is launched could be written down."""

    def __init__(self, directory: Path, reason: str) -> None:
        super().__init__(
            f"{directory} cannot be written: {reason}; nothing was launched",
            hint="make room or see who may write there, or name another directory: `state` in the site file",
        )


FILE, TORN = "journal.jsonl", "journal.torn"
# An entry takes a millisecond to write, most of it for the disk: who holds the lock for seconds hangs.
PATIENCE = 5.0
_POLL = 0.02


@dataclass(frozen=True, slots=True)
class JournalContents:
    """All entries, the oldest first, and what was no entry: the rest of a write that was cut short."""

    entries: tuple[JournalEntry, ...] = ()
    torn: tuple[str, ...] = ()


class Journal:
    """In the state directory. Several processes may write at once."""

    def __init__(self, directory: Path, disk: JournalDisk, clock: Clock) -> None:
        self.path = directory / FILE
        self._torn = directory / TORN
        self._disk = disk
        self._clock = clock

    def check(self) -> None:
        """Raises StateUnusableError unless an entry could be added."""
        try:
            self._disk.make(self.path.parent)
            self._disk.open(self.path).close()
        except OSError as error:
            raise StateUnusableError(self.path, error.strerror or str(error)) from error

    def add(self, entry: JournalEntry) -> None:
        """Written and on the disk when it returns; raises OSError, and then nothing of it is there."""
        line = (json.dumps(entry.as_json(), ensure_ascii=True) + "\n").encode("ascii")
        self._disk.make(self.path.parent)
        hold = self._hold()
        try:
            size = self._mended()
            try:
                self._append(self.path, line)
            except OSError:
                with suppress(OSError):
                    self._disk.truncate(self.path, size)
                raise
        finally:
            hold.release()

    def read(self) -> JournalContents:
        """Needs no lock: a line that is being written counts as torn for the moment. Raises OSError."""
        content = self._disk.read(self.path) or b""
        aside = self._disk.read(self._torn) or b""
        entries, torn = [], []
        for line in content.split(b"\n"):
            found = _entry(line)
            if found is not None:
                entries.append(found)
            elif line.strip():
                torn.append(line)
        texts = (line.decode("utf-8", "replace") for line in (*aside.split(b"\n"), *torn) if line)
        return JournalContents(tuple(entries), tuple(texts))

    def _hold(self) -> HeldLock:
        until = self._clock.now() + PATIENCE
        while (hold := self._disk.try_hold(self.path)) is None:
            if self._clock.now() > until:
                raise TimeoutError(110, f"another process has locked it for over {PATIENCE:g} s", str(self.path))
            self._clock.sleep(_POLL)
        return hold

    def _mended(self) -> int:
        """The size up to which the file is whole lines; a torn last one is completed, or kept aside first."""
        content = self._disk.read(self.path) or b""
        whole = content.rfind(b"\n") + 1
        rest = content[whole:]
        if not rest:
            return whole
        if _entry(rest) is not None:  # only its line feed is missing
            self._append(self.path, b"\n")
            return len(content) + 1
        # A line feed first: what was being kept aside may have been cut short too.
        self._append(self._torn, b"\n" + rest + b"\n")
        self._disk.truncate(self.path, whole)
        return whole

    def _append(self, path: Path, data: bytes) -> None:
        tape = self._disk.open(path)
        try:
            tape.write(data)
            tape.sync()
        finally:
            tape.close()


def _entry(line: bytes) -> JournalEntry | None:
    try:
        return parse_entry(json.loads(line))
    except ValueError:
        return None
