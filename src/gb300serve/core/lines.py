"""Lines of engine logs: a line feed ends a line, a carriage return ends a record inside it."""

from collections.abc import Iterable, Iterator


def split_records(text: str) -> Iterator[str]:
    """The records of `text`, split at line feeds and at carriage returns; empty ones are left out.

    Progress bars are redrawn with carriage returns: one line of a log can hold hundreds of records.
    """
    for line in text.split("\n"):
        for record in line.split("\r"):
            if record:
                yield record


def split_lines(chunks: Iterable[str]) -> Iterator[str]:
    """Whole lines (without their line feed) of a text that comes in pieces; the last may lack its line feed."""
    rest = ""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split("\n")
        yield from whole
    if rest:
        yield rest
