"""What the shell reader makes of a text: words of parts, commands of words."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from gb300serve.importers.marked import Marked
from gb300serve.importers.report import TextPosition

PartKind = Literal["text", "variable", "command", "program"]


class Part(NamedTuple):
    """A piece of a word. `quoted`: what it stands for is neither split nor expanded further.

    `text` is the text itself, the inside of `${…}`, the inside of `$(…)`, or what makes it a program.
    """

    kind: PartKind
    text: str
    quoted: bool
    source: Marked | None = None


class Word(NamedTuple):
    """One word as written."""

    parts: tuple[Part, ...]
    place: TextPosition

    @property
    def plain(self) -> str:
        """The text of its literal parts, for a look at what the word is."""
        return "".join(part.text if part.kind == "text" else "\0" for part in self.parts)

    @property
    def bare(self) -> bool:
        """Whether nothing of it is quoted or expanded: only then is a word a keyword, or an assignment."""
        return bool(self.parts) and self.parts[0].kind == "text" and not self.parts[0].quoted


class Operator(NamedTuple):
    """`;`, `&&`, `|`, a parenthesis, the end of a line; or `>` or `<`, of which `kind` is the whole sign."""

    text: str
    place: TextPosition
    kind: str = ""
    target: Word | None = None
    """The file that a redirection names, or the word that ends its here-document."""


@dataclass(slots=True)
class Command:
    """A simple command: its words, and what ended it."""

    words: list[Word] = field(default_factory=list)
    end: str = ""
    redirections: list[Operator] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    """The bodies of the here-documents that its line announced, where it ends the line."""
    comment: TextPosition | None = None


class ExpandedWord(NamedTuple):
    """A word after expansion. Values that only the client can know stand in it as references (`reference`)."""

    text: str
    place: TextPosition


class Reference(NamedTuple):
    """Where a value is read at launch: a variable of the client, or a file."""

    kind: Literal["env", "file"]
    name: str


OPEN, CLOSE = "\ue000", "\ue001"


def mark(index: int) -> str:
    """What stands in a field for the reference of this index; neither sign is left in a mended text."""
    return f"{OPEN}{index}{CLOSE}"
