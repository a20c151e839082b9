"""`gb300serve cache`."""

import shlex
from typing import Annotated, Literal

import typer

from gb300serve.cli.cache_actions import CacheRequest, act
from gb300serve.cli.caching import CacheDirectories
from gb300serve.cli.parameters import Json, On, RecipeDirs, Sets, SiteFile, Station
from gb300serve.cli.services import Services
from gb300serve.cli.workspace import workspace


def run(
    ctx: typer.Context,
    action: Annotated[
        Literal["list", "show", "seed", "pin", "verify"], typer.Argument(help="What to do; all but list take a REF.")
    ] = "list",
    ref: Annotated[
        str | None, typer.Argument(metavar="[REF]", help="v14, a lane's release, or a file.", show_default=False)
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="SOURCE",
            help="Seed from a file, or from a set that is here: the beginning of its identity or sha256.",
            show_default=False,
        ),
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option("--identity", metavar="NAME", help="Seed under this whole identity.", show_default=False),
    ] = None,
    renew: Annotated[bool, typer.Option("--renew", help="Pin what lies there now, in place of an older pin.")] = False,
    on: On = None,
    sets: Sets = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """The kernel-tuning cache: its sets, what a release expects, seeding and pinning before a launch, verifying."""
    place = CacheDirectories(
        Services(workspace(ctx, recipes, site, station)), on or "docker", shlex.join(["gb300serve", "cache", action])
    )
    place.check()
    return act(place, CacheRequest(action, ref, tuple(sets or ()), source, identity, renew, json))
