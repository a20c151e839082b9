"""One command at a time changes what serves: a lock across processes, which tells who holds it."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gb300serve.core.errors import MachineError
from gb300serve.core.ports import Clock
from gb300serve.journal.journal import HeldLock, JournalDisk, Requester, format_time, parse_requester, parse_time

_POLL = 0.05
# Stops that are remembered: a launch asks only for those since its own start.
_REMEMBERED = 32


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Whose command it is: `up v14 --replace`, asked by somebody, since seconds since 1970."""

    command: str
    by: Requester
    since: float

    def __str__(self) -> str:
        return f"gb300serve {self.command} ({self.by}, since {format_time(self.since)})"


class LaneHeldError(MachineError):
    """Another command is at it."""

    def __init__(self, holder: LockHolder | None) -> None:
        who = str(holder) if holder else "another gb300serve"
        super().__init__(
            f"{who} is changing what serves; nothing was done", hint="wait for it, then see: gb300serve status"
        )


class LaneLock:
    """A file in the state directory, locked while containers are changed and free while a boot is only watched.

    It remembers which containers were stopped and by whom, so that a launch whose container ends while it watches can
    tell a stop that was asked for from a death.
    """

    def __init__(self, path: Path, disk: JournalDisk, clock: Clock, command: str, by: Requester) -> None:
        self._path = path
        self._disk = disk
        self._clock = clock
        self._command = command
        self._by = by
        self._hold: HeldLock | None = None
        self._was_held = False
        self._began = clock.now()

    def acquire(self, patience: float) -> None:
        """Nothing where it is held already. Raises LaneHeldError after `patience` seconds, OSError the first time.

        Later, a state directory that cannot be written any more keeps no launch from going on: it keeps out the others.
        """
        if self._hold is not None:
            return
        try:
            self._hold = self._taken(patience)
        except OSError:
            if not self._was_held:
                raise
            return
        self._was_held = True
        self._write(self._content() | {"holder": _document(LockHolder(self._command, self._by, self._clock.now()))})

    def _taken(self, patience: float) -> HeldLock:
        self._disk.make(self._path.parent)
        until = self._clock.now() + patience
        while (hold := self._disk.try_hold(self._path)) is None:
            if self._clock.now() >= until:
                raise LaneHeldError(_holder(self._content().get("holder")))
            self._clock.sleep(_POLL)
        return hold

    def release(self) -> None:
        if self._hold is not None:
            self._hold.release()
            self._hold = None

    def stopping(self, container: str) -> None:
        """This command stops the container (by id)."""
        known = self._content()
        mine = {"id": container, "holder": _document(LockHolder(self._command, self._by, self._clock.now()))}
        stops = [*_stops(known), mine]
        self._write(known | {"stops": stops[-_REMEMBERED:]})

    def stopped_by(self, container: str) -> str | None:
        """Who else has stopped the container since this command began."""
        for stop in reversed(_stops(self._content())):
            holder = _holder(stop.get("holder"))
            if holder and stop.get("id") == container and holder.since >= self._began and holder.by != self._by:
                return str(holder)
        return None

    def _content(self) -> dict[str, Any]:
        """What the last holder wrote; nothing where that was cut short."""
        try:
            found = json.loads(self._disk.read(self._path) or b"{}")
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, content: Mapping[str, Any]) -> None:
        """The lock holds whether or not it can be told by whom."""
        with suppress(OSError):
            self._disk.overwrite(self._path, json.dumps(content).encode("ascii"))


def _stops(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = content.get("stops")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _document(holder: LockHolder) -> dict[str, Any]:
    by = {"user": holder.by.user, "host": holder.by.host, "pid": holder.by.pid}
    return {"command": holder.command, "by": by, "since": format_time(holder.since)}


def _holder(value: object) -> LockHolder | None:
    if not isinstance(value, dict):
        return None
    by, since = parse_requester(value.get("by")), parse_time(value.get("since"))
    return None if by is None or since is None else LockHolder(str(value.get("command")), by, since)
