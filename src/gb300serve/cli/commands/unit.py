"""`gb300serve unit`."""

from pathlib import Path

import typer

from gb300serve.app.hosts import Hosts
from gb300serve.app.launchable import launchable
from gb300serve.app.state import StateDirectory
from gb300serve.cli.parameters import On, RecipeDirs, Ref, Sets, SiteFile, Station, open_workspace
from gb300serve.core.files import is_file
from gb300serve.lifecycle.launch import CHANGED
from gb300serve.render.systemd import service


def run(
    ctx: typer.Context,
    ref: Ref,
    on: On = None,
    sets: Sets = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
) -> int:
    """Print a systemd service that brings a lane up with `up --wait`, and takes it down cleanly."""
    workspace, console = open_workspace(ctx, recipes, site, station)
    loaded, recipe = workspace.load(ref, sets)
    plan = launchable(workspace.compile(loaded, recipe))
    workspace.print_notes()
    program = (str(workspace.environment.python), "-m", "gb300serve")
    host = ("--on", on) if on else ()
    changes = tuple(word for change in sets or () for word in ("--set", change))
    # systemd starts it in another directory.
    options = tuple(word if word.startswith("--") else _absolute(word) for word in workspace.options)
    address = f"{recipe.ref}{CHANGED}" if sets else recipe.ref
    unit = service(
        plan,
        up=(*program, "up", _absolute(ref) if is_file(Path(ref)) else recipe.ref, "--wait", *host, *options, *changes),
        down=(*program, "down", address, *host, *options),
        user=StateDirectory(workspace).requester.user,
        local_docker=on != "sim" and Hosts(workspace).is_local("docker"),
    )
    console.result(unit)
    return 0


def _absolute(word: str) -> str:
    """The absolute path of a file or directory that exists; any other word as it is."""
    path = Path(word)
    return str(path.absolute()) if path.exists() else word
