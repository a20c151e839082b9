"""Parameters that several commands share, and the workspace that they select."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from gb300serve.app.workspace import Workspace
from gb300serve.cli.console import TerminalConsole

Ref = Annotated[str, typer.Argument(metavar="REF", help="v14, deepseek-v4.1-flash/v14, or a file.", show_default=False)]
OptionalRef = Annotated[
    str | None, typer.Argument(metavar="[REF]", help="A release; without it, the only live lane.", show_default=False)
]
SiteFile = Annotated[Path | None, typer.Option("--site", metavar="FILE", help="The site file.", show_default=False)]
Station = Annotated[
    str | None,
    typer.Option("--station", metavar="NAME", help="One of the site's `stations`.", show_default=False),
]
RecipeDirs = Annotated[
    list[Path] | None,
    typer.Option("--recipes", metavar="DIR", help="A recipes directory; repeatable.", show_default=False),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change a value; repeatable.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")]
On = Annotated[
    Literal["docker", "sim"] | None,
    typer.Option("--on", help="The Docker Engine, or the simulated Station.", show_default=False),
]
SimSpeed = Annotated[
    float, typer.Option("--sim-speed", min=1, help="How much faster time runs on the simulated Station.")
]
SimFault = Annotated[
    str | None,
    typer.Option("--sim-fault", metavar="NAME", help="A fault for the simulated Station to stage.", show_default=False),
]
Reason = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the journal.", show_default=False)
]


def open_workspace(
    ctx: typer.Context, recipes: Sequence[Path] | None, site: Path | None, station: str | None = None
) -> tuple[Workspace, TerminalConsole]:
    """The workspace of a command line, and the console for its result."""
    environment, console = ctx.obj
    return Workspace(environment, console, tuple(recipes or ()), site, station or environment.station), console
