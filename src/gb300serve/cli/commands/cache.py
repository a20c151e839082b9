"""`gb300serve cache`."""

from dataclasses import replace
from typing import Annotated, Literal

import typer

from gb300serve.app.actions import Invocation, suggesting
from gb300serve.app.cache import CacheDirectories, NoReleaseError, ReleaseCache, pin_or_restore, releases_by_set, seed
from gb300serve.app.hosts import Hosts
from gb300serve.autotune.sets import list_sets
from gb300serve.cli.console import TerminalConsole
from gb300serve.cli.parameters import Json, On, RecipeDirs, Sets, SiteFile, Station, open_workspace
from gb300serve.cli.views.cache import document, pinned_line, release_lines, seeded_line, set_lines
from gb300serve.core.errors import MachineError

REWRITTEN = "every boot writes the file again; afterwards, check it with"


def run(
    ctx: typer.Context,
    action: Annotated[
        Literal["list", "show", "seed", "pin", "verify"], typer.Argument(help="All actions but list require a REF.")
    ] = "list",
    ref: Annotated[
        str | None, typer.Argument(metavar="[REF]", help="A release or a recipe file.", show_default=False)
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="SOURCE",
            help="A file, or the first digits (8 or more) of the identity or sha256 of a set in this cache.",
            show_default=False,
        ),
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option("--identity", metavar="NAME", help="Seed under this full identity.", show_default=False),
    ] = None,
    renew: Annotated[bool, typer.Option("--renew", help="Pin the current set in place of an older pin.")] = False,
    on: On = None,
    sets: Sets = None,
    site: SiteFile = None,
    station: Station = None,
    recipes: RecipeDirs = None,
    json: Json = False,
) -> int:
    """List, show, seed, pin or verify the tuned kernels that a boot loads. Exit 6 if verify finds a wrong set."""
    workspace, console = open_workspace(ctx, recipes, site, station)
    invocation = Invocation(ref or "", on, workspace.options, tuple(sets or ()))
    with suggesting(invocation):
        directories = CacheDirectories(Hosts(workspace), on or "docker", f"gb300serve cache {action}")
        directories.check()
        if ref is None and action != "list":
            raise NoReleaseError(action)
        cache = None if ref is None else ReleaseCache.of(directories, ref, invocation.overrides)
        if cache is not None and action in {"seed", "pin"}:
            if action == "seed":
                seeded = seed(cache, source, identity)
                console.messages(seeded.warnings, "warning")
                console.message(seeded_line(seeded.placed, seeded.source))
            else:
                console.message(pinned_line(pin_or_restore(cache, renew=renew)))
            cache = replace(cache)  # its files have changed: read them again
            if not json:
                console.message(f"{REWRITTEN} {invocation.command('cache verify')}", "dim")
                return 0
        return _show(directories, cache, console, action, json=json)


def _show(
    directories: CacheDirectories, cache: ReleaseCache | None, console: TerminalConsole, action: str, *, json: bool
) -> int:
    """The sets, or the state of a release; 6 if verify finds a wrong set."""
    directory = cache.directory if cache else directories.directory()
    tuning_sets = list_sets(directories.files, directory)
    verified = cache.verified() if cache else None
    if json:
        console.document(document(directory, tuning_sets, cache, verified))
    elif cache is None or verified is None or action == "list":
        console.results(set_lines(directory, tuning_sets, releases_by_set(directories) if tuning_sets else {}))
    else:
        console.results(release_lines(cache, verified))
    is_wrong = action == "verify" and verified is not None and verified.state in {"missing", "differs"}
    return MachineError.exit_code if is_wrong else 0
