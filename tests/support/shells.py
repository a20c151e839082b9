"""Real shells, and a `docker` first on their PATH that prints its words."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

SHELLS = ("sh", "bash", "zsh")
ALL = "GB300SERVE_TEST_ALL"

# A program of the shell itself: it starts in a millisecond, and a property test starts it hundreds of times.
FAKE_DOCKER = """\
#!/bin/sh
for word in docker "$@"; do printf '%s\\0' "$word"; done
"""


class Shell:
    """One shell; what it runs sees a `docker` that prints its words."""

    def __init__(self, name: str, directory: Path) -> None:
        self.program = shutil.which(name)
        if self.program is None:
            assert os.environ.get(ALL) is None, f"{name} is not installed"
            pytest.skip(f"{name} is not installed")
        self.directory = directory
        bin_directory = directory / "bin"
        bin_directory.mkdir(exist_ok=True)
        docker = bin_directory / "docker"
        docker.write_text(FAKE_DOCKER)
        docker.chmod(0o755)

    def words(self, text: str, variables: dict[str, str] | None = None, *, pasted: bool = False) -> tuple[str, ...]:
        """The words that docker gets when the text is run: as a script, or from standard input as if pasted."""
        done = self.run(text, variables, pasted=pasted)
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        *words, rest = done.stdout.split(b"\0")
        assert rest == b""
        return tuple(word.decode() for word in words)

    def run(
        self, text: str, variables: dict[str, str] | None = None, *, pasted: bool = False
    ) -> subprocess.CompletedProcess[bytes]:
        assert self.program is not None
        environment = {
            "PATH": f"{self.directory / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.directory),
            "LC_ALL": "C.UTF-8",
            **(variables or {}),
        }
        words = [self.program] if pasted else [self.program, "-c", text]
        given = text.encode() if pasted else None
        return subprocess.run(
            words, env=environment, cwd=self.directory, input=given, capture_output=True, check=False, timeout=60
        )


def as_json(words: tuple[str, ...]) -> list[object]:
    """The words, those that are JSON objects or lists read as such."""
    return [json.loads(word) if word[:1] in {"{", "["} else word for word in words]
