"""The state directory of this machine: runs, the journal, and the locks of lanes."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from gb300serve.adapters.system import SystemClock, SystemDisk, asker
from gb300serve.app.console import Console
from gb300serve.app.workspace import Workspace, state_directory
from gb300serve.journal.history import RunHistory
from gb300serve.journal.journal import Journal, JournalContents
from gb300serve.journal.lock import LaneLock
from gb300serve.journal.runs import Runs

_Content = TypeVar("_Content")


class StateDirectory:
    """Created by the first write, readable by its user alone."""

    def __init__(self, workspace: Workspace) -> None:
        self.path = state_directory(workspace)
        self.disk = SystemDisk()
        self.clock = SystemClock()
        self.requester = asker(workspace.environment.variables)
        self.runs = Runs(self.path, self.disk)
        self.journal = Journal(self.path, self.disk, self.clock)
        self._console: Console = workspace.console
        self._reported: set[str] = set()

    def lock(self, on: str, command: str) -> LaneLock:
        """For one command that changes containers on that host."""
        return LaneLock(self.path / f"{on}.lock", self.disk, self.clock, command, self.requester)

    def history(self) -> RunHistory:
        """The journal and the runs. A part that cannot be read is reported once and counts as empty."""
        story = self._read(self.journal.path, self.journal.read, JournalContents())
        return RunHistory(story.entries, self._read(self.runs.directory, self.runs.all, ()))

    def damaged_runs(self) -> tuple[str, ...]:
        """Runs whose record cannot be read."""
        return self._read(self.runs.directory, self.runs.damaged, ())

    def _read(self, path: Path, read: Callable[[], _Content], default: _Content) -> _Content:
        try:
            return read()
        except OSError as error:
            message = f"{path} cannot be read: {error.strerror or error}"
            if message not in self._reported:  # a launch reads it more than once
                self._reported.add(message)
                self._console.message(message, "warning")
            return default
