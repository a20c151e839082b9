"""Recipes and sites as the command line means them: search paths, the site that applies, loading with errors raised."""

import errno
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TextIO

import typer

from gb300serve.cli.console import Console
from gb300serve.cli.deferred import defer
from gb300serve.cli.views import diagnostics
from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.core.errors import CommandLineError, CompileError, RecipeError
from gb300serve.core.files import expand_user, is_directory, is_file
from gb300serve.core.text import suggestion
from gb300serve.plan.check import check
from gb300serve.plan.compile import Compiler, ImageRef
from gb300serve.plan.model import Plan
from gb300serve.plan.secrets import LiteralSecret, literal_secrets
from gb300serve.recipe.catalog import Catalog, RecipeFile, is_path
from gb300serve.recipe.load import LoadedRecipe, RecipeLoader
from gb300serve.recipe.merge import ASSIGNMENT_PREFIX
from gb300serve.recipe.model import Recipe
from gb300serve.recipe.site import Site, load_site


def standard_input() -> TextIO:
    """Raises OSError where it is closed: Python has no `sys.stdin` then."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return sys.stdin


# Pydantic searches every installed distribution for plugins at import: 15 ms of start-up that nothing here uses.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
defer()


@dataclass(frozen=True, slots=True)
class Environment:
    """What the variables say. Values of secrets are looked up one by one, by name, at launch."""

    site: Path | None
    station: str | None
    recipes: tuple[Path, ...]
    config_home: Path
    state_home: Path
    docker_host: str | None
    docker_context: str | None
    no_color: bool
    python: Path
    variables: Mapping[str, str] = field(repr=False)


def read_environment(variables: Mapping[str, str] | None = None) -> Environment:
    """The environment of this process, or of a test."""
    found = os.environ if variables is None else variables
    home = expand_user(found.get("HOME") or "~")

    def directory(name: str, default: str) -> Path:
        value = Path(found.get(name) or home / default)
        return value if value.is_absolute() else home / default  # the XDG specification: relative ones are ignored

    return Environment(
        site=expand_user(value) if (value := found.get("GB300SERVE_SITE")) else None,
        station=found.get("GB300SERVE_STATION") or None,
        recipes=tuple(expand_user(p) for p in found.get("GB300SERVE_RECIPES", "").split(os.pathsep) if p),
        config_home=directory("XDG_CONFIG_HOME", ".config"),
        state_home=directory("XDG_STATE_HOME", ".local/state"),
        docker_host=found.get("DOCKER_HOST") or None,
        docker_context=found.get("DOCKER_CONTEXT") or None,
        # no-color.org: present and not empty; a dumb terminal knows no escape sequences.
        no_color=bool(found.get("NO_COLOR")) or found.get("TERM") == "dumb",
        python=Path(sys.executable),
        variables=found,
    )


IGNORABLE = "SEC003"
"""The rule about literal secrets: a recipe that ignores it says that what was found is none."""


class RecipeInvalidError(RecipeError):
    """The file is not a recipe; the diagnostics say why."""

    def __init__(self, file: str, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__(f"{file} is not a valid recipe", diagnostics=diagnostics)


class LiteralSecretError(CompileError):
    """A secret stands in clear where commands, plans and runs would repeat it; its value is never part of a message."""

    def __init__(self, loaded: LoadedRecipe, literal: LiteralSecret) -> None:
        path = literal.path[:-1] if literal.in_key else literal.path
        place = loaded.place(literal.path, of_key=literal.in_key)
        where = ".".join(map(str, path)) or "the recipe"
        super().__init__(
            f"{place.file}:{place.line}: {where} holds a literal secret ({literal.kind}), which would be shown",
            hint=f"replace it at its issuer, and write a reference (gb300serve rules {IGNORABLE}); where it is none, "
            f"lint.ignore: {{{IGNORABLE}: why}}",
        )


class OverrideInvalidError(CommandLineError):
    """What `--set` says does not fit the recipe."""

    def __init__(self, first: Diagnostic) -> None:
        super().__init__(f"{first.file}: {first.message}", hint=first.hint)


class OverridesDisagreeError(CommandLineError):
    """A valid recipe is none any more with what `--set` says; the diagnostics name what no longer fits."""

    def __init__(self, sets: Sequence[str], file: str, diagnostics: tuple[Diagnostic, ...]) -> None:
        said = " ".join(f"--set {each}" for each in sets)
        super().__init__(f"{said}: the rest of {file} does not fit that", diagnostics=diagnostics)


class UnknownStationError(CommandLineError):
    """The site has no Station of this name."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = tuple(known)
        meant = suggestion(name, names)
        there = f"the site knows {', '.join(names)}" if names else "the site has no `stations`"
        super().__init__(f"there is no station {name}", hint=f"did you mean {meant}?" if meant else there)


class UnknownDefaultLaneError(RecipeError):
    """`default_lane` of the site is no lane."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = tuple(known)
        meant = suggestion(name, names)
        hint = f"did you mean {meant}?" if meant else f"lanes here: {', '.join(names)}"
        super().__init__(f"the site's default_lane is {name}, and there is no such lane", hint=hint)


class NoDirectoryError(CommandLineError):
    """`--recipes` names no directory."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"--recipes {path}: not a directory")


@dataclass
class Workspace:
    """What every verb starts from."""

    environment: Environment
    console: Console
    recipes: tuple[Path, ...] = ()
    site_file: Path | None = None
    station: str | None = None
    """A name in the site's `stations`; None means the site's top level."""

    notes: list[Diagnostic] = field(default_factory=list)
    _sites: dict[Path | None, Site] = field(default_factory=dict)

    @cached_property
    def catalog(self) -> Catalog:
        """`--recipes`, then the variable, the working directory's and the shipped ones."""
        for path in self.recipes:
            if not is_directory(path):
                raise NoDirectoryError(path)
        for path in self.environment.recipes:
            if not is_directory(path):  # a profile may name one that is not on every machine
                self.console.message(f"GB300SERVE_RECIPES: {path} is not a directory, and is passed over", "warning")
        found = (*self.recipes, *self.environment.recipes, Path("recipes"), shipped_recipes())
        unique: dict[Path, Path] = {}
        for path in filter(is_directory, found):
            unique.setdefault(path.resolve(), path)
        return Catalog(tuple(unique.values()))

    @property
    def words(self) -> tuple[str, ...]:
        """The options that chose the site, the Station and the recipes, for commands in messages."""
        site = ("--site", str(self.site_file)) if self.site_file else ()
        station = ("--station", self.station) if self.station else ()
        return (*site, *station, *(word for path in self.recipes for word in ("--recipes", str(path))))

    def at(self, station: str | None) -> "Workspace":
        """The same at another Station of the site; recipes that were read are shared."""
        other = replace(self, station=station, _sites={})
        other.catalog, other.loader = self.catalog, self.loader
        return other

    @cached_property
    def loader(self) -> RecipeLoader:
        """Reads the recipes of the catalog."""
        return RecipeLoader(self.catalog)

    def find(self, ref: str) -> RecipeFile:
        """The file that REF means; only a bare release needs the site, for its default lane."""
        bare = "/" not in ref and not is_path(ref)
        return self.catalog.find(ref, self._default_lane() if bare else None)

    def _default_lane(self) -> str | None:
        named = self.site(None).default_lane
        if named is None or any((directory / named).is_dir() for directory in self.catalog.directories):
            return named
        raise UnknownDefaultLaneError(named, dict.fromkeys(ref.partition("/")[0] for ref in self.catalog.refs()))

    def reference(self, directory: Path | None) -> Path | None:
        """The reference site: beside the recipe, else the first on the search path."""
        places = (directory, *self.catalog.directories) if directory else self.catalog.directories
        return next((path for place in places if is_file(path := place / "site.yaml")), None)

    def site(self, directory: Path | None) -> Site:
        """The site that applies to recipes of `directory`."""
        user = self.environment.config_home / "gb300serve" / "site.yaml"
        chosen = self.site_file or self.environment.site or (user if is_file(user) else None)
        reference = self.reference(directory)
        if reference not in self._sites:
            self._sites[reference] = self._at(load_site(chosen, reference))
        return self._sites[reference]

    def _at(self, site: Site) -> Site:
        if self.station is None:
            return site
        if self.station not in site.stations:
            raise UnknownStationError(self.station, site.stations)
        return site.at(self.station)

    def load(self, ref: str, sets: Sequence[str] | None = None) -> tuple[LoadedRecipe, Recipe]:
        """A valid recipe; raises RecipeError (exit 3) or CommandLineError (exit 2). Notes are kept."""
        loaded = self.loader.load_file(self.find(ref), tuple(sets or ()))
        found = check(loaded)
        errors = tuple(d for d in found if d.severity == "error")
        overridden = [d for d in errors if d.file and d.file.startswith(ASSIGNMENT_PREFIX)]
        if overridden:
            raise OverrideInvalidError(overridden[0])
        if (errors or loaded.recipe is None) and sets and self._valid(ref):
            raise OverridesDisagreeError(sets, loaded.source.name, errors)
        if errors or loaded.recipe is None:
            raise RecipeInvalidError(loaded.source.name, errors)
        noticed = [d for d in found if d.severity != "error"]
        noticed += [_shadow(loaded, path) for path in loaded.file.shadows]
        noticed += [_deprecated(loaded)] if loaded.recipe.status == "deprecated" else []
        self.notes += [d for d in noticed if d not in self.notes]
        return loaded, loaded.recipe

    def _valid(self, ref: str) -> bool:
        """Without what `--set` changes."""
        return all(found.severity != "error" for found in check(self.loader.load_file(self.find(ref))))

    def shareable(self, ref: str, sets: Sequence[str] | None = None) -> tuple[LoadedRecipe, Recipe]:
        """As `load`, of what is going to be printed, pinned or launched: no literal secret is in it (exit 4)."""
        loaded, recipe = self.load(ref, sets)
        if IGNORABLE not in recipe.lint.ignore and (literal := next(literal_secrets(loaded.root), None)):
            raise LiteralSecretError(loaded, literal)
        return loaded, recipe

    def compile(self, loaded: LoadedRecipe, recipe: Recipe, image_ref: ImageRef = "digest") -> Plan:
        """Compiled for the site that applies; raises CompileError (exit 4)."""
        return Compiler(self.site(loaded.file.directory), image_ref).plan(recipe, changed=loaded.changed)

    def pinned_plan(self, loaded: LoadedRecipe, recipe: Recipe) -> Plan:
        """Compiled with the reference site beside the recipe, as pinned commands always are."""
        return Compiler(load_site(None, self.reference(loaded.file.directory))).plan(recipe)

    def say_notes(self) -> None:
        """Print what was noticed on the way; nothing of it stops anyone."""
        for line in diagnostics.text_lines(self.notes):
            self.console.message(line, "dim")


def workspace(
    ctx: typer.Context, recipes: Sequence[Path] | None, site: Path | None, station: str | None = None
) -> Workspace:
    """The workspace of a command line."""
    environment, console = ctx.obj
    return Workspace(environment, console, tuple(recipes or ()), site, station or environment.station)


def shipped_recipes() -> Path:
    """Inside the wheel; in a checkout, its own `recipes`."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "shipped_recipes"
    return inside if inside.is_dir() else package.parents[1] / "recipes"


def _deprecated(loaded: LoadedRecipe) -> Diagnostic:
    place = loaded.place(("status",))
    hint = "`gb300serve list` prints the releases that took its place"
    return diagnostic("REF002", "this release is deprecated", hint, place, "status")


def _shadow(loaded: LoadedRecipe, other: Path) -> Diagnostic:
    message = f"{other} is another {other.parent.name}/{other.stem}, and is not used"
    hint = "the first directory of the search path wins"
    return diagnostic("REF001", message, hint, (loaded.source.name, 1, 1))


def state_directory(space: Workspace) -> Path:
    """Runs, journal and locks: the site's `state`, else the user's own; a named Station's own below it."""
    home = _home(space)
    return home / "stations" / space.station if space.station else home


def learned_boots(space: Workspace) -> Path:
    """The boots that `fit --calibrate` has read: the same for every Station."""
    return _home(space) / "boots.json"


def _home(space: Workspace) -> Path:
    """It need not exist."""
    named = space.site(None).state
    return expand_user(named) if named else space.environment.state_home / "gb300serve"
