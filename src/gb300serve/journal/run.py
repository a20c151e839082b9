"""One run's directory while it is written. Every method may raise OSError; what was written before stays."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gb300serve.journal.disk import AppendFile, JournalDisk
from gb300serve.journal.run_record import RunRecord

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
        self._disk.replace(self.path / name, encoded(text))

    def save(self) -> None:
        """The record, whole or not at all."""
        self.write(RECORD, json.dumps(self.record.as_json(), indent=2, ensure_ascii=False) + "\n")

    def log(self, lines: str) -> None:
        """Lines of the container's log, without the last line feed; a part of them is never left behind."""
        self._append(LOG, encoded(lines + "\n"))

    def event(self, event: Mapping[str, Any]) -> None:
        """Something that happened, as a line of events.jsonl."""
        self._append(EVENTS, encoded(json.dumps(event, ensure_ascii=False, default=str) + "\n"))

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


def encoded(text: str) -> bytes:
    """UTF-8; what has no UTF-8 (a file name that is none) is written escaped."""
    return text.encode("utf-8", "backslashreplace")
