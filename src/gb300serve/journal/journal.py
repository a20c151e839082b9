"""The journal: an append-only file of JSON lines, which survives a kill of its writer at any moment."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
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
    """Cached: a log may have a thousand lines per second."""
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def parse_time(text: object) -> float | None:
    """Seconds since 1970 from `format_time`'s text; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def format_stamp(at: float) -> str:
    """Seconds since 1970 as `20261129T195003Z`, for file names."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%SZ")


@dataclass(frozen=True, slots=True)
class Requester:
    """The user and the process that requested a change."""

    user: str
    host: str
    pid: int

    def __str__(self) -> str:
        return f"{self.user}@{self.host}, process {self.pid}"


@dataclass(frozen=True, slots=True)
class RunningLane:
    """A running container of gb300serve, possibly still booting. `release` is `lane/release` from its labels."""

    release: str
    container: str
    id: str
    plan: str


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
    """The outcome in a sentence."""
    reason: str | None = None
    """The user's --reason."""
    before: tuple[RunningLane, ...] = ()
    after: tuple[RunningLane, ...] = ()
    run: str | None = None
    station: str | None = None
    """A name in the site's `stations`; None for the top level."""

    def as_json(self) -> dict[str, Any]:
        """One line of the journal, and one object of `journal --json`."""
        return {
            "at": format_time(self.at),
            "verb": self.verb,
            "on": self.on,
            "by": asdict(self.by),
            "from": [asdict(lane) for lane in self.before],
            "to": [asdict(lane) for lane in self.after],
            "result": self.result,
            "said": self.said,
            "reason": self.reason,
            "run": self.run,
            "station": self.station,
        }


def parse_entry(value: object) -> JournalEntry | None:
    """Parse a line; None if it is not a journal entry. Unknown keys of later versions are ignored."""
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
        before=_parse_lanes(value.get("from")),
        after=_parse_lanes(value.get("to")),
        run=get_text(value, "run"),
        station=get_text(value, "station"),
    )


def parse_requester(value: object) -> Requester | None:
    """From `{"user", "host", "pid"}`."""
    if not isinstance(value, dict) or not isinstance(value.get("pid"), int):
        return None
    return Requester(str(value.get("user")), str(value.get("host")), value["pid"])


def get_text(value: Mapping[str, Any], key: str) -> str | None:
    """The value if it is a text, otherwise None."""
    text = value.get(key)
    return text if isinstance(text, str) else None


def _parse_lanes(value: object) -> tuple[RunningLane, ...]:
    lanes = [lane for lane in value if isinstance(lane, dict)] if isinstance(value, list) else []
    names = ("release", "container", "id", "plan")
    return tuple(RunningLane(*(str(lane.get(name)) for name in names)) for lane in lanes)


class AppendFile(Protocol):
    """A file opened for appending. `write` and `sync` may raise OSError."""

    def write(self, data: bytes) -> None:
        """Write all of it, or as much as fits before the error."""

    def sync(self) -> None: ...

    def close(self) -> None: ...


class HeldLock(Protocol):
    """A lock that is held. The system releases it when the process dies."""

    def release(self) -> None: ...


class JournalDisk(Protocol):
    """Every call may raise OSError. Files are readable by their user alone (0600, directories 0700)."""

    def make(self, directory: Path) -> None:
        """Create the directory and its parents if missing."""

    def claim(self, directory: Path) -> bool:
        """Create the directory; False if the name exists."""

    def names(self, directory: Path) -> tuple[str, ...]:
        """The sorted names in it; empty if it does not exist."""

    def read(self, path: Path) -> bytes | None:
        """The content; None if the file does not exist."""

    def open(self, path: Path) -> AppendFile:
        """Open for appending; the file is created if missing."""

    def replace(self, path: Path, data: bytes) -> None:
        """Replace atomically: a reader sees the old content or the new."""

    def overwrite(self, path: Path, data: bytes) -> None:
        """Write in place, for a locked file; readers must expect incomplete content."""

    def truncate(self, path: Path, size: int) -> None: ...

    def remove(self, path: Path) -> None:
        """Remove a file or a directory with its content, if it exists."""

    def try_hold(self, path: Path) -> HeldLock | None:
        """Lock the file, which is created if missing; None while another process holds the lock."""


class StateUnusableError(MachineError):
    """The state directory is not writable, so no launch could be recorded."""

    def __init__(self, directory: Path, reason: str) -> None:
        super().__init__(
            f"{directory} cannot be written: {reason}; nothing was launched",
            hint="free disk space, check its permissions, or set another directory: `state` in the site file",
        )


FILE, TORN = "journal.jsonl", "journal.torn"
# Writing an entry takes about a millisecond; a process that holds the lock for seconds hangs.
PATIENCE = 5.0
_POLL = 0.02


@dataclass(frozen=True, slots=True)
class JournalContents:
    """All entries, oldest first, and the incomplete lines of interrupted writes."""

    entries: tuple[JournalEntry, ...] = ()
    torn: tuple[str, ...] = ()


class Journal:
    """The journal of a state directory. Several processes may write at once."""

    def __init__(self, directory: Path, disk: JournalDisk, clock: Clock) -> None:
        self.path = directory / FILE
        self._torn = directory / TORN
        self._disk = disk
        self._clock = clock

    def check(self) -> None:
        """Raises StateUnusableError if no entry could be added."""
        try:
            self._disk.make(self.path.parent)
            self._disk.open(self.path).close()
        except OSError as error:
            raise StateUnusableError(self.path, error.strerror or str(error)) from error

    def add(self, entry: JournalEntry) -> None:
        """Append an entry and sync it to disk; on OSError the journal is unchanged."""
        line = (json.dumps(entry.as_json(), ensure_ascii=True) + "\n").encode("ascii")
        self._disk.make(self.path.parent)
        lock = self._lock()
        try:
            size = self._repair()
            try:
                self._append(self.path, line)
            except OSError:
                with suppress(OSError):
                    self._disk.truncate(self.path, size)
                raise
        finally:
            lock.release()

    def read(self) -> JournalContents:
        """Read without a lock: a line that is being written counts as torn. Raises OSError."""
        content = self._disk.read(self.path) or b""
        aside = self._disk.read(self._torn) or b""
        parsed = [(line, _entry(line)) for line in content.split(b"\n")]
        torn = (line for line, entry in parsed if entry is None and line.strip())
        texts = (line.decode("utf-8", "replace") for line in (*aside.split(b"\n"), *torn) if line)
        return JournalContents(tuple(entry for _, entry in parsed if entry is not None), tuple(texts))

    def _lock(self) -> HeldLock:
        until = self._clock.now() + PATIENCE
        while (lock := self._disk.try_hold(self.path)) is None:
            if self._clock.now() > until:
                raise TimeoutError(110, f"another process has held its lock for over {PATIENCE:g} s", str(self.path))
            self._clock.sleep(_POLL)
        return lock

    def _repair(self) -> int:
        """Complete a torn last line or move it to the torn file; returns the size of the complete lines."""
        content = self._disk.read(self.path) or b""
        whole = content.rfind(b"\n") + 1
        rest = content[whole:]
        if not rest:
            return whole
        if _entry(rest) is not None:  # only the line feed is missing
            self._append(self.path, b"\n")
            return len(content) + 1
        # A line feed first: an earlier write to this file may have been torn, too.
        self._append(self._torn, b"\n" + rest + b"\n")
        self._disk.truncate(self.path, whole)
        return whole

    def _append(self, path: Path, data: bytes) -> None:
        file = self._disk.open(path)
        try:
            file.write(data)
            file.sync()
        finally:
            file.close()


def _entry(line: bytes) -> JournalEntry | None:
    try:
        return parse_entry(json.loads(line))
    except ValueError:
        return None
