"""The lane lock: only one command at a time changes the running lanes. Its file names the holder."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gb300serve.core.errors import MachineError
from gb300serve.core.ports import Clock
from gb300serve.journal.journal import HeldLock, JournalDisk, Requester, format_time, parse_requester, parse_time

_POLL = 0.05
# A launch needs only the stops since its own start.
_MAX_STOPS = 32


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The command (`up v14 --replace`), who requested it, and since when (seconds since 1970)."""

    command: str
    by: Requester
    since: float

    def __str__(self) -> str:
        return f"gb300serve {self.command} ({self.by}, since {format_time(self.since)})"


class LaneHeldError(MachineError):
    """Another command holds the lock."""

    def __init__(self, holder: LockHolder | None) -> None:
        who = str(holder) if holder else "another gb300serve"
        super().__init__(
            f"{who} is changing the running lanes; nothing was done", hint="wait for it, then run: gb300serve status"
        )


class LaneLock:
    """A file in the state directory, locked while containers are changed and free while a boot is watched.

    It records which containers were stopped and by whom: a launch whose container ends while it watches can tell a
    requested stop from a failure.
    """

    def __init__(self, path: Path, disk: JournalDisk, clock: Clock, command: str, by: Requester) -> None:
        self._path = path
        self._disk = disk
        self._clock = clock
        self._command = command
        self._by = by
        self._lock: HeldLock | None = None
        self._was_held = False
        self._began = clock.now()

    def acquire(self, patience: float) -> None:
        """Take the lock unless it is held already. Raises LaneHeldError after `patience` seconds.

        Raises OSError only the first time: a directory that becomes unwritable later must not end a launch.
        """
        if self._lock is not None:
            return
        try:
            self._lock = self._take(patience)
        except OSError:
            if not self._was_held:
                raise
            return
        self._was_held = True
        self._write(self._content() | {"holder": _as_json(LockHolder(self._command, self._by, self._clock.now()))})

    def _take(self, patience: float) -> HeldLock:
        self._disk.make(self._path.parent)
        until = self._clock.now() + patience
        while (lock := self._disk.try_hold(self._path)) is None:
            if self._clock.now() >= until:
                raise LaneHeldError(_parse_holder(self._content().get("holder")))
            self._clock.sleep(_POLL)
        return lock

    def release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def stopping(self, container: str) -> None:
        """Record that this command stops the container (by id)."""
        content = self._content()
        stop = {"id": container, "holder": _as_json(LockHolder(self._command, self._by, self._clock.now()))}
        stops = [*_stops(content), stop]
        self._write(content | {"stops": stops[-_MAX_STOPS:]})

    def stopped_by(self, container: str) -> str | None:
        """The other command that stopped the container since this one began; None if no other did."""
        for stop in reversed(_stops(self._content())):
            holder = _parse_holder(stop.get("holder"))
            if holder and stop.get("id") == container and holder.since >= self._began and holder.by != self._by:
                return str(holder)
        return None

    def _content(self) -> dict[str, Any]:
        """What the last holder wrote; empty if that is incomplete."""
        try:
            content = json.loads(self._disk.read(self._path) or b"{}")
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def _write(self, content: Mapping[str, Any]) -> None:
        """Best effort: the lock is held even if its holder cannot be written."""
        with suppress(OSError):
            self._disk.overwrite(self._path, json.dumps(content).encode("ascii"))


def _stops(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    stops = content.get("stops")
    return [stop for stop in stops if isinstance(stop, dict)] if isinstance(stops, list) else []


def _as_json(holder: LockHolder) -> dict[str, Any]:
    return {"command": holder.command, "by": asdict(holder.by), "since": format_time(holder.since)}


def _parse_holder(value: object) -> LockHolder | None:
    if not isinstance(value, dict):
        return None
    by, since = parse_requester(value.get("by")), parse_time(value.get("since"))
    return None if by is None or since is None else LockHolder(str(value.get("command")), by, since)
