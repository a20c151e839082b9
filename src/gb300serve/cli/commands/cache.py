"""`gb300serve cache`."""

import shlex
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import typer

from gb300serve.app.actions import Invocation, suggesting
from gb300serve.app.cache import CacheDirectories, NoReleaseError, ReleaseCache, pin, restore, seed
from gb300serve.app.hosts import Hosts
from gb300serve.autotune.pins import CacheVerdict, Pin, SeededSet
from gb300serve.autotune.sets import list_sets
from gb300serve.cli.console import TerminalConsole
from gb300serve.cli.parameters import Json, On, RecipeDirs, Sets, SiteFile, Station, open_workspace
from gb300serve.cli.views.cache import SCHEMA, release_document, release_lines, set_lines
from gb300serve.core.errors import Gb300Error, MachineError
from gb300serve.journal.journal import format_stamp

Action = Literal["list", "show", "seed", "pin", "verify"]


@dataclass(frozen=True, slots=True)
class CacheRequest:
    """What the command line said."""

    action: Action
    ref: str | None
    sets: tuple[str, ...]
    source: str | None = None
    identity: str | None = None
    renew: bool = False
    json: bool = False


def act(place: CacheDirectories, console: TerminalConsole, asked: CacheRequest) -> int:
    """0, or 6 where `verify` finds that the next boot will not load what it should."""
    if asked.ref is None:
        if asked.action != "list":
            raise NoReleaseError(asked.action)
        return _list(place, console, asked)
    cache = ReleaseCache.of(place, asked.ref, asked.sets)
    match asked.action:
        case "list":
            return _list(place, console, asked, cache)
        case "seed":
            return _seed(cache, console, asked)
        case "pin":
            return _pin(cache, console, asked)
        case _:
            verified = cache.verified()
            _show(cache, console, verified, asked)
            wrong = asked.action == "verify" and verified.state in {"missing", "differs"}
            return MachineError.exit_code if wrong else 0


def _list(
    place: CacheDirectories, console: TerminalConsole, asked: CacheRequest, cache: ReleaseCache | None = None
) -> int:
    directory = cache.directory if cache else place.directory()
    sets = list_sets(place.files, directory)
    if asked.json:
        document = {"directory": str(directory), "sets": [one.as_json() for one in sets]}
        console.document({"schema": SCHEMA, **document, **(release_document(cache, cache.verified()) if cache else {})})
    elif sets:
        for line in set_lines(sets, _expecting(place)):
            console.result(line)
    else:
        console.result(f"no tuning set below {directory}")
    return 0


def _expecting(place: CacheDirectories) -> dict[str, str]:
    """Releases by the path of the set that they load; of a release that does not compile here nothing is said."""
    found: dict[str, str] = {}
    for ref in place.hosts.workspace.catalog.refs():
        try:
            path = ReleaseCache.of(place, ref, ()).verified().found
        except Gb300Error:
            continue
        if path is not None:
            known = found.get(str(path.path))
            found[str(path.path)] = f"{known}, {ref.rpartition('/')[2]}" if known else ref
    return found


def _show(cache: ReleaseCache, console: TerminalConsole, verified: CacheVerdict, asked: CacheRequest) -> None:
    if asked.json:
        sets = [one.as_json() for one in cache.sets]
        about = release_document(cache, verified)
        console.document({"schema": SCHEMA, "directory": str(cache.directory), "sets": sets, **about})
        return
    for line in release_lines(cache, verified):
        console.result(line)


def _seed(cache: ReleaseCache, console: TerminalConsole, asked: CacheRequest) -> int:
    done = seed(cache, asked.source, asked.identity, format_stamp(cache.place.now()))
    for warning in done.warnings:
        console.message(warning, "warning")
    console.message(f"{_placed(done.placed)} from {done.source}")
    _after(cache, console, asked)
    return 0


def _pin(cache: ReleaseCache, console: TerminalConsole, asked: CacheRequest) -> int:
    kept = cache.pin
    if kept is not None and not asked.renew:
        console.message(_placed(restore(cache, kept, format_stamp(cache.place.now()))))
    else:
        made = pin(cache, cache.place.now())
        console.message(_pinned(made))
    _after(cache, console, asked)
    return 0


def _after(cache: ReleaseCache, console: TerminalConsole, asked: CacheRequest) -> None:
    """As it is now: read again, with nothing remembered."""
    now = replace(cache)
    if asked.json:
        _show(now, console, now.verified(), asked)
    else:
        verify = Invocation(asked.ref or "", cache.place.on, cache.place.hosts.workspace.options).command(
            "cache verify"
        )
        message = f"every boot writes the file again; afterwards, check it with {verify}"
        console.message(message, "dim")


def _placed(placed: SeededSet) -> str:
    if not placed.changed:
        return f"{placed.path} holds these {placed.content.configs} configurations already"
    aside = f"; what was there is kept as {placed.backup.name}" if placed.backup else ""
    return f"{placed.path}: {placed.content.configs} configurations, sha256 {placed.content.sha256[:12]}{aside}"


def _pinned(made: Pin) -> str:
    return f"pinned for {made.release}: {made.configs} configurations, sha256 {made.sha256}; a copy is kept"


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
    workspace, console = open_workspace(ctx, recipes, site, station)
    command = shlex.join(["gb300serve", "cache", action])
    with suggesting(Invocation(ref or "", on, workspace.options, tuple(sets or ()))):
        place = CacheDirectories(Hosts(workspace), on or "docker", command)
        place.check()
        return act(place, console, CacheRequest(action, ref, tuple(sets or ()), source, identity, renew, json))
