"""The elements of a shell text: source text with positions, words of parts, commands of words."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from gb300serve.importers.report import TextPosition


class SourceText:
    """A text that keeps the original position of each character."""

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
            starts = [0, *(index + 1 for index, character in enumerate(text) if character == "\n")]
        self._starts = starts

    def place(self, index: int) -> TextPosition:
        """The original position of the character at `index`."""
        if self._fixed is not None or not self._origin:
            return self._fixed or TextPosition(1, 1)
        offset = self._origin[index] if index < len(self._origin) else self._origin[-1] + 1
        line = bisect_right(self._starts, offset)
        return TextPosition(line, offset - self._starts[line - 1] + 1)

    def part(self, start: int, end: int) -> "SourceText":
        """The characters from `start` up to `end`."""
        return SourceText(self.text[start:end], self._origin[start:end], self._starts, self._fixed)

    def sub(self, pattern: str, new: Callable[[re.Match[str]], str], flags: int = 0) -> "SourceText":
        """Replace every match; the replacement keeps the position of the match."""
        pieces: list[str] = []
        origin: list[int] = []
        last = 0
        for match in re.finditer(pattern, self.text, flags):
            start, end = match.span()
            replacement = new(match)
            if replacement == match[0]:
                continue
            pieces += (self.text[last:start], replacement)
            origin += self._origin[last:start]
            # Characters keep their own position where possible, so that the rest of the line does not move.
            spare = self._origin[start] if start < len(self._origin) else len(self.text)
            origin += [self._origin[start + n] if start + n < end else spare for n in range(len(replacement))]
            last = end
        if not pieces:
            return self
        origin += self._origin[last:]
        return SourceText("".join((*pieces, self.text[last:])), origin, self._starts)


PartKind = Literal["text", "variable", "command", "program"]


class Part(NamedTuple):
    """A piece of a word. `text` is literal text, the inside of `${…}` or `$(…)`, or the name of an unsupported form.

    `quoted`: its value is neither split nor expanded further.
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
        """The text of the literal parts; a null character replaces each other part."""
        return "".join(part.text if part.kind == "text" else "\0" for part in self.parts)

    @property
    def bare(self) -> bool:
        """Whether the word starts with unquoted text, so that it can be a keyword or an assignment."""
        return bool(self.parts) and self.parts[0].kind == "text" and not self.parts[0].quoted


class Operator(NamedTuple):
    """`;`, `&&`, `|`, a parenthesis, a line feed; or `>` or `<`, with the whole operator as `kind`."""

    text: str
    place: TextPosition
    kind: str = ""
    target: Word | None = None
    """The file of a redirection, or the word that ends a here-document."""


@dataclass(slots=True)
class Command:
    """A simple command: its words, and the operator that ends it."""

    words: list[Word] = field(default_factory=list)
    end: str = ""
    redirections: list[Operator] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    """The bodies of the here-documents of its line, if it is the last command of the line."""
    comment: TextPosition | None = None


class ExpandedWord(NamedTuple):
    """A word after expansion. Values that are known only at launch are reference marks in it."""

    text: str
    place: TextPosition


class Reference(NamedTuple):
    """A value that is read at launch, from an environment variable or a file."""

    kind: Literal["env", "file"]
    name: str


OPEN, CLOSE = "\ue000", "\ue001"


def reference_mark(index: int) -> str:
    """The mark of the reference with this index. `mend` removes both characters from the text."""
    return f"{OPEN}{index}{CLOSE}"
