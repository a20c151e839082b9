"""`gb300serve help`: the guides, and the options of each command."""

import os
import pydoc
from importlib.resources import files
from io import StringIO
from typing import Annotated, cast

import typer
from rich.console import Console as Terminal
from rich.markdown import Markdown
from rich.theme import Theme
from typer.core import TyperGroup

from gb300serve.app.environment import PROGRAM
from gb300serve.cli.console import TerminalConsole
from gb300serve.core.errors import CommandLineError
from gb300serve.core.text import suggestion

_WIDEST = 100  # columns: longer lines are hard to read
# rich's own styles set a black background, which stands out on a light terminal.
_STYLES = Theme({"markdown.code": "bold cyan", "markdown.code_block": "cyan"})


class UnknownTopicError(CommandLineError):
    """No guide and no command has this name."""

    def __init__(self, text: str, known: list[str]) -> None:
        meant = suggestion(text, known)
        hint = f"did you mean {meant}?" if meant else f"`{PROGRAM} help` lists the topics"
        super().__init__(f"{text} is not a topic or a command", hint=hint)


def run(
    ctx: typer.Context,
    topic: Annotated[
        str | None, typer.Argument(metavar="[TOPIC|COMMAND]", help="A guide or a command.", show_default=False)
    ] = None,
) -> None:
    """Show a guide or the options of a command; without a name, list the guides."""
    _, console = ctx.obj
    guides = read_guides()
    root = ctx.find_root()
    group = cast("TyperGroup", root.command)
    if topic is None:
        console.result(_overview(guides))
    elif topic in guides:
        _show(guides[topic], console)
    elif command := group.get_command(root, topic):
        command.make_context(topic, ["--help"], parent=root)  # prints the help and exits
    else:
        raise UnknownTopicError(topic, [*guides, *group.list_commands(root)])


def read_guides() -> dict[str, str]:
    """The text of each guide by its topic."""
    found = [entry for entry in (files("gb300serve") / "guides").iterdir() if entry.name.endswith(".md")]
    texts = {entry.name.removesuffix(".md"): entry.read_text(encoding="utf-8") for entry in found}
    return dict(sorted(texts.items()))


def summary(guide: str) -> str:
    """The sentence under the title."""
    return guide.split("\n\n", 2)[1].replace("\n", " ")


def _overview(guides: dict[str, str]) -> str:
    width = max(map(len, guides)) + 2
    topics = [f"  {topic:{width}}{summary(guide)}" for topic, guide in guides.items()]
    usage = (f"`{PROGRAM} help TOPIC` shows a guide.", f"`{PROGRAM} --help` lists the commands.")
    return "\n".join(["Topics:", *topics, "", *usage])


def _show(guide: str, console: TerminalConsole) -> None:
    if not console.out.isatty():
        console.result(guide.rstrip("\n"))
        return
    os.environ.setdefault("LESS", "FRX")  # less passes colours on, and leaves a short page on the screen
    pydoc.pager(guide if console.no_color else _rendered(guide))


def _rendered(guide: str) -> str:
    page = StringIO()
    terminal = Terminal(file=page, force_terminal=True, theme=_STYLES)
    terminal.print(Markdown(guide, code_theme="ansi_dark"), width=min(terminal.width, _WIDEST))
    return page.getvalue()
