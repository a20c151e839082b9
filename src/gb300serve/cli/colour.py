"""Colour on a terminal, by rich. Loaded with the first coloured line: rich takes 40 ms to import."""

from typing import TextIO

from rich.console import Console
from rich.text import Text

STYLES = {"error": "red", "warning": "yellow", "note": "cyan", "good": "green", "dim": "dim", "bold": "bold"}


def terminal(stream: TextIO, *, no_color: bool = False) -> Console:
    """A rich console that prints text as it is: no markup, no highlighting."""
    return Console(file=stream, no_color=no_color, highlight=False, markup=False, emoji=False)


def print_styled(text: str, style: str, stream: TextIO) -> None:
    """One line. The terminal breaks a long line, not rich: an image or a path can be copied whole."""
    terminal(stream).print(Text(text, style=STYLES[style]), soft_wrap=True)
