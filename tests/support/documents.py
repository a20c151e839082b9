"""README.md and the guides as tests read them: fenced blocks, commands, inline code."""

import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.program import ROOT

README = ROOT / "README.md"
GUIDES = sorted((ROOT / "src" / "gb300serve" / "guides").glob("*.md"))
DOCUMENTS = [README, *GUIDES]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A block that cannot be run here states what it needs in its first line.
_NOT_RUN = re.compile(r"# (needs|run from) ")
_HERE_DOCUMENT = re.compile(r"<<'(\w+)'$")
_EXIT_CODE = re.compile(r"# exit code (\d+)\b")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language and its text."""

    language: str
    text: str

    @property
    def is_run(self) -> bool:
        return self.language == "console" or (self.language == "sh" and not _NOT_RUN.match(self.text))


@dataclass(frozen=True, slots=True)
class ShellLine:
    """A command as a shell reads it, with its here-document, and the exit code that the comment states."""

    text: str
    exit_code: int

    @property
    def words(self) -> list[str]:
        """The words of the first line, without the comment; empty for a comment."""
        return shlex.split(self.text.split("\n", 1)[0].removesuffix("\\"), comments=True)


PORT = "30006"  # of v14, as the documents show it


def recipes_on_port(directory: Path, port: int) -> Path:
    """The shipped recipes below `directory`, with another port in place of that of v14: tests run side by side."""
    recipes = directory / "elsewhere"
    shutil.copytree(ROOT / "recipes", recipes)
    for path in recipes.glob("*/*.*"):
        path.write_text(path.read_text(encoding="utf-8").replace(PORT, str(port)), encoding="utf-8")
    return recipes


def name_of(path: Path) -> str:
    return path.stem


def blocks(path: Path) -> list[Block]:
    return [Block(*found) for found in _BLOCK.findall(path.read_text(encoding="utf-8"))]


def shell_lines(text: str) -> Iterator[ShellLine]:
    """The commands of a `sh` block. A here-document and a continued line belong to the command that begins them."""
    lines = iter(text.splitlines())
    for line in lines:
        command = [line]
        if found := _HERE_DOCUMENT.search(line):
            for more in lines:
                command.append(more)
                if more == found[1]:
                    break
        while command[-1].endswith("\\"):
            command.append(next(lines))
        stated = _EXIT_CODE.search(line)
        yield ShellLine("\n".join(command), int(stated[1]) if stated else 0)


def shown(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a `console` block, each with the output below it."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def inline_code(path: Path) -> list[str]:
    """What stands in backticks outside of blocks."""
    return re.findall(r"`([^`\n]+)`", _BLOCK.sub("", path.read_text(encoding="utf-8")))
