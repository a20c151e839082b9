"""Generated launch scripts: a recipe compiles to the words that bash passes to docker, or the script is refused."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from gb300serve.core.errors import CompileError
from gb300serve.importers.read import read_text
from gb300serve.importers.shell.words import ShellEnvironment
from gb300serve.render.docker_run import docker_argv
from tests.support.long import LONG
from tests.support.shell_scripts import FILE, script
from tests.support.shells import Shell

SCRIPTS, PARTS = (20_000, 16) if LONG else (320, 4)
LEAST_IMPORTED = 0.4
STUB = """\
#!/bin/sh
[ "$1" = run ] || exit 0
for word in docker "$@"; do printf '%s\\0' "$word"; done >> "$HOME/words"
"""


class Bash(Shell):
    """bash, with stubs of docker and sudo that note the words of a launch."""

    def __init__(self, directory: Path) -> None:
        super().__init__("bash", directory)
        (directory / "bin" / "docker").write_text(STUB)
        (directory / "bin" / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
        (directory / "bin" / "sudo").chmod(0o755)
        (directory / "settings.env").write_text(FILE)

    def launched(self, text: str) -> tuple[str, ...] | None:
        """The words of the launch; None if the script does not reach one."""
        (self.directory / "words").write_bytes(b"")
        self.run(text)
        words = (self.directory / "words").read_bytes().decode().split("\0")[:-1]
        return tuple(words) or None


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Bash:
    return Bash(tmp_path_factory.mktemp("bash"))


def imported(text: str, directory: Path) -> tuple[str, ...] | None:
    """The words that the recipe of a script compiles to; None if it cannot be imported."""
    environment = ShellEnvironment(str(directory), str(directory))
    read: Callable[[str], str | None] = {"settings.env": FILE, "./settings.env": FILE}.get
    try:
        return docker_argv(read_text(text, "script.sh", environment, read).plan)
    except CompileError:
        return None


@pytest.mark.parametrize("part", range(PARTS))
def test_a_recipe_is_what_bash_launches(bash: Bash, part: int) -> None:
    chance = random.Random(part)
    count, done = SCRIPTS // PARTS, 0
    for _ in range(count):
        text = script(chance)
        words = imported(text, bash.directory)
        if words is not None:
            done += 1
            launched = bash.launched(text)
            assert launched is None or words == launched, text
    assert done > count * LEAST_IMPORTED
