"""What a shell text starts, and what else it does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gb300serve.importers.report import TextPosition, UnresolvedError
from gb300serve.importers.shell.words import ExpandedWord, Reference, Word


class Dependence(NamedTuple):
    """The compound command that decides whether its commands run."""

    keyword: str
    place: TextPosition


class Status(NamedTuple):
    """Whether a command succeeds; None if the text does not decide it. `command`: how to name it."""

    value: bool | None
    command: str
    place: TextPosition
    assumed: frozenset[str] = frozenset()
    """The variables and arguments that were read as unset."""


class ScriptLaunch(NamedTuple):
    """A program that the text starts, with its arguments; `error` if one of these is not known."""

    words: tuple[ExpandedWord, ...]
    place: TextPosition
    exported: dict[str, str]
    references: list[Reference]
    directory: str
    files: dict[str, str | None]
    error: UnresolvedError | None
    depends: Dependence | None
    host: str | None


@dataclass(slots=True)
class Findings:
    """What a text does besides its launches; nested shells add to the same."""

    find_launch: Callable[[Sequence[str]], int | None]
    """The index of the program in a command that is a launch; None for another command."""
    belongs: Callable[[Word, ScriptLaunch], bool] = lambda *_: False
    """Whether a line that begins with a word belongs to the launch on the line before."""
    read_file: Callable[[str], str | None] = lambda _: None
    files: dict[str, str | None] = field(default_factory=dict)
    """The files that the text writes; None if the content is not known."""
    commands: list[tuple[tuple[ExpandedWord, ...], TextPosition]] = field(default_factory=list)
    """The other programs that run."""
    unknown: list[UnresolvedError] = field(default_factory=list)
    """Why the name of a program is not known."""
    absent: list[tuple[str, TextPosition]] = field(default_factory=list)
    """Scripts that the text runs, and that are not here."""
    joined: list[tuple[TextPosition, TextPosition | None]] = field(default_factory=list)
    """Lines that lost their continuation, each with the comment that ended the line before."""
    repeated: int = 0
