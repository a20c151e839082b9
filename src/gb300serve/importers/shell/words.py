"""What the shell reader makes of a text: words of parts, commands of words."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from gb300serve.importers.report import TextPosition


class SourceText:
    """`text`, and for each character its offset in the original."""

    def __init__(
        self,
        text: str,
        origin: Sequence[int] | None = None,
        starts: Sequence[int] | None = None,
        fixed: TextPosition | None = None,
    ) -> None:
        self.text = text
        self._fixed = fixed
        self._origin = range(len(text)) if origin is None else origin
        if starts is None:
            starts = [0, *(index + 1 for index, sign in enumerate(text) if sign == "\n")]
        self._starts = starts

    def place(self, index: int) -> TextPosition:
        """Where the character at `index` stood."""
        if self._fixed is not None or not self._origin:
            return self._fixed or TextPosition(1, 1)
        offset = self._origin[index] if index < len(self._origin) else self._origin[-1] + 1
        line = bisect_right(self._starts, offset)
        return TextPosition(line, offset - self._starts[line - 1] + 1)

    def part(self, start: int, end: int) -> "SourceText":
        """The characters from `start` up to `end`."""
        return SourceText(self.text[start:end], self._origin[start:end], self._starts, self._fixed)

    def sub(self, pattern: str, new: Callable[[re.Match[str]], str], flags: int = 0) -> "SourceText":
        """Every match replaced; what replaces it stands where the match began."""
        pieces: list[str] = []
        origin: list[int] = []
        last = 0
        for match in re.finditer(pattern, self.text, flags):
            start, end = match.span()
            written = new(match)
            if written == match[0]:
                continue
            pieces += (self.text[last:start], written)
            origin += self._origin[last:start]
            # As many as fit keep their own place: a change of two signs does not move the rest of the line.
            spare = self._origin[start] if start < len(self._origin) else len(self.text)
            origin += [self._origin[start + n] if start + n < end else spare for n in range(len(written))]
            last = end
        if not pieces:
            return self
        origin += self._origin[last:]
        return SourceText("".join((*pieces, self.text[last:])), origin, self._starts)


PartKind = Literal["text", "variable", "command", "program"]


class Part(NamedTuple):
    """A piece of a word. `quoted`: what it stands for is neither split nor expanded further.

    `text` is the text itself, the inside of `${…}`, the inside of `$(…)`, or what makes it a program.
    """

    kind: PartKind
    text: str
    quoted: bool
    source: SourceText | None = None


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


def reference_mark(index: int) -> str:
    """What stands in a field for the reference of this index; neither sign is left in a mended text."""
    return f"{OPEN}{index}{CLOSE}"
