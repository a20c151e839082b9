"""The journal: a file of JSON lines that only grows. What was written stays, whatever kills the writer."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gb300serve.core.clock import Clock
from gb300serve.journal.disk import Hold, JournalDisk, StateUnusableError
from gb300serve.journal.entry import JournalEntry, entry_of

FILE, TORN = "journal.jsonl", "journal.torn"
# An entry takes a millisecond to write, most of it for the disk: who holds the lock for seconds hangs.
PATIENCE = 5.0
_POLL = 0.02


@dataclass(frozen=True, slots=True)
class Story:
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

    def read(self) -> Story:
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
        return Story(tuple(entries), tuple(texts))

    def _hold(self) -> Hold:
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
        return entry_of(json.loads(line))
    except ValueError:
        return None
