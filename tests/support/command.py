"""Other programs, for tests that need the real ones."""

import os
import subprocess
from collections.abc import Mapping


def run(*words: str, env: Mapping[str, str] | None = None, text: str = "", timeout: float = 120.0) -> str:
    """The program's standard output; fails the test with both streams when the program fails."""
    done = complete(*words, env=env, text=text, timeout=timeout)
    assert done.returncode == 0, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def complete(
    *words: str, env: Mapping[str, str] | None = None, text: str = "", timeout: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """The same, whatever its exit status. `env` comes on top of this process's environment."""
    environment = {**os.environ, **(env or {})}
    return subprocess.run(
        words, env=environment, input=text, capture_output=True, text=True, timeout=timeout, check=False
    )
