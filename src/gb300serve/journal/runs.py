"""The runs of this machine: a directory for each launch, `<state>/runs/<UTC>-<lane>-<release>/`."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from gb300serve.journal.disk import JournalDisk, StateUnusableError
from gb300serve.journal.moments import stamp
from gb300serve.journal.run import RECORD, Run
from gb300serve.journal.run_record import RunRecord, record_of

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
            path = self._claimed(f"{stamp(record.began)}-{record.lane}-{record.release}")
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
        found = record_of(json.loads(content))
    except (ValueError, KeyError, TypeError):
        return None
    return replace(found, run=name) if found else None
