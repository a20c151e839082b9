"""Parameters that several commands share, and the workspace that they select."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from gb300serve.app.workspace import Workspace
from gb300serve.cli.console import TerminalConsole

Ref = Annotated[
    str,
    typer.Argument(
        metavar="REF", help="A release (v14 or deepseek-v4.1-flash/v14) or a recipe file.", show_default=False
    ),
]
OptionalRef = Annotated[
    str | None, typer.Argument(metavar="[REF]", help="A release; default: the only running lane.", show_default=False)
]
SiteFile = Annotated[Path | None, typer.Option("--site", metavar="FILE", help="The site file.", show_default=False)]
Station = Annotated[
    str | None,
    typer.Option("--station", metavar="NAME", help="A Station from `stations` in the site file.", show_default=False),
]
RecipeDirs = Annotated[
    list[Path] | None,
    typer.Option("--recipes", metavar="DIR", help="A directory with recipes; repeatable.", show_default=False),
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Override a recipe value; repeatable.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
On = Annotated[
    Literal["docker", "sim"] | None,
    typer.Option("--on", help="Use the Docker Engine or the simulated Station.", show_default=False),
]
SimSpeed = Annotated[float, typer.Option("--sim-speed", min=1, help="Speed-up of time on the simulated Station.")]
SimFault = Annotated[
    str | None, typer.Option("--sim-fault", metavar="NAME", help="A fault to simulate.", show_default=False)
]
Reason = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="The reason to record in the journal.", show_default=False),
]


def open_workspace(
    ctx: typer.Context, recipes: Sequence[Path] | None, site: Path | None, station: str | None = None
) -> tuple[Workspace, TerminalConsole]:
    """The workspace of a command line, and the console for its result."""
    environment, console = ctx.obj
    return Workspace(environment, console, tuple(recipes or ()), site, station or environment.station), console
