"""Command lines run in this process, with an environment that is the test's own."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from gb300serve.app.environment import read_environment
from gb300serve.cli.app import invoke
from gb300serve.cli.console import TerminalConsole


@dataclass(frozen=True, slots=True)
class Answer:
    """How a command line ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


def run(*words: str | Path, variables: Mapping[str, str] | None = None) -> Answer:
    """Run one command line; nothing of this process's environment is seen."""
    environment = read_environment({"HOME": "/nonexistent", **(variables or {})})
    out, err = StringIO(), StringIO()
    console = TerminalConsole(out, err)
    code = invoke([str(word) for word in words], console, (environment, console))
    return Answer(code, out.getvalue(), err.getvalue())
