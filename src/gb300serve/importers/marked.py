"""A text whose every character knows where it stood in the file, through any number of replacements."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence

from gb300serve.importers.report import TextPosition


class Marked:
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

    def part(self, start: int, end: int) -> "Marked":
        """The characters from `start` up to `end`."""
        return Marked(self.text[start:end], self._origin[start:end], self._starts, self._fixed)

    def sub(self, pattern: str, new: Callable[[re.Match[str]], str], flags: int = 0) -> "Marked":
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
        return Marked("".join((*pieces, self.text[last:])), origin, self._starts)
