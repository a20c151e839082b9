"""Rows as aligned columns: plain text, the same on a terminal and in a pipe."""

import unicodedata
from collections.abc import Iterator, Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The headerer and the rows, with two blanks between columns."""
    widths = [max(width(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, *rows):
        yield "  ".join(text + " " * (size - width(text)) for text, size in zip(row, widths, strict=True)).rstrip()


def width(text: str) -> int:
    """Columns on a terminal: East Asian wide characters take two, combining ones none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
