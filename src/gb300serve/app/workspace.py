"""Recipes and sites: search paths, the site that applies, and loading."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from gb300serve.app.causes import CauseFinder, Checked
from gb300serve.app.environment import Console, Environment
from gb300serve.autotune.identity import identity_change
from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.core.errors import Action, CommandLineError, CompileError, RecipeError
from gb300serve.core.files import expand_user, is_directory, is_file
from gb300serve.core.text import suggestion
from gb300serve.fit.section import recipe_problems
from gb300serve.plan.check import LiteralSecret, literal_secrets
from gb300serve.plan.compile import Compiler, ImageRef
from gb300serve.plan.model import Plan
from gb300serve.recipe.catalog import Catalog, RecipeFile, is_path
from gb300serve.recipe.load import LoadedRecipe, RecipeLoader
from gb300serve.recipe.merge import ASSIGNMENT_PREFIX
from gb300serve.recipe.model import RETIRED, SECRET_RULE, Recipe
from gb300serve.recipe.site import Site, load_site


class RecipeInvalidError(RecipeError):
    """The file is not a recipe; the diagnostics say why."""

    def __init__(self, file: str, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__(f"{file} is not a valid recipe", diagnostics=diagnostics)


class LiteralSecretError(CompileError):
    """The recipe holds a literal secret, which commands and plans would repeat. Messages never do."""

    def __init__(self, loaded: LoadedRecipe, literal: LiteralSecret) -> None:
        path = literal.path[:-1] if literal.in_key else literal.path
        place = loaded.place(literal.path, of_key=literal.in_key)
        where = ".".join(map(str, path)) or "the recipe"
        super().__init__(
            f"{place.file}:{place.line}: {where} holds a literal secret ({literal.kind}), which would be repeated",
            hint=f"revoke the secret where it was issued, and write a reference instead; if it is not a secret: "
            f"lint.ignore: {{{SECRET_RULE}: {{path: {where}, reason: why}}}}",
            suggest=(Action("rules", "how to write a reference", (SECRET_RULE,), ref=""),),
        )


class OverrideInvalidError(CommandLineError):
    """A `--set` value is invalid for the recipe."""

    def __init__(self, first: Diagnostic) -> None:
        super().__init__(f"{first.file}: {first.message}", hint=first.hint)


class OverridesDisagreeError(CommandLineError):
    """`--set` makes a valid recipe invalid; the diagnostics name the conflicts."""

    def __init__(self, sets: Sequence[str], file: str, diagnostics: tuple[Diagnostic, ...]) -> None:
        options = " ".join(f"--set {assignment}" for assignment in sets)
        super().__init__(f"{options}: conflicts with the rest of {file}", diagnostics=diagnostics)


class UnknownStationError(CommandLineError):
    """The site has no Station of this name."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = tuple(known)
        meant = suggestion(name, names)
        known_names = f"the site defines {', '.join(names)}" if names else "the site does not define `stations`"
        super().__init__(f"station {name} not found", hint=f"did you mean {meant}?" if meant else known_names)


class UnknownDefaultLaneError(RecipeError):
    """`default_lane` of the site does not exist."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = tuple(known)
        meant = suggestion(name, names)
        hint = f"did you mean {meant}?" if meant else f"lanes here: {', '.join(names)}"
        super().__init__(f"default_lane of the site is {name}, but that lane does not exist", hint=hint)


class NoDirectoryError(CommandLineError):
    """`--recipes` does not name a directory."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"--recipes {path}: not a directory")


@dataclass
class Workspace:
    """Recipes, sites and the console of one command."""

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
        """`--recipes`, then GB300SERVE_RECIPES, `recipes` in the working directory, and the shipped recipes."""
        for path in self.recipes:
            if not is_directory(path):
                raise NoDirectoryError(path)
        for path in self.environment.recipes:
            if not is_directory(path):  # a shell profile may name a directory that only some machines have
                self.console.message(f"GB300SERVE_RECIPES: {path} is not a directory and is ignored", "warning")
        found = (*self.recipes, *self.environment.recipes, Path("recipes"), shipped_recipes())
        unique: dict[Path, Path] = {}
        for path in filter(is_directory, found):
            unique.setdefault(path.resolve(), path)
        return Catalog(tuple(unique.values()))

    @property
    def options(self) -> tuple[str, ...]:
        """The options that select the site, the Station and the recipes, for commands in messages."""
        site = ("--site", str(self.site_file)) if self.site_file else ()
        station = ("--station", self.station) if self.station else ()
        return (*site, *station, *(word for path in self.recipes for word in ("--recipes", str(path))))

    def at(self, station: str | None) -> "Workspace":
        """This workspace at another Station of the site; it shares the recipes already read."""
        other = replace(self, station=station, _sites={})
        other.catalog, other.loader = self.catalog, self.loader
        return other

    @cached_property
    def loader(self) -> RecipeLoader:
        return self.loader_of({})

    def loader_of(self, texts: Mapping[Path, str]) -> RecipeLoader:
        """A loader that reads `texts` in place of the files at these paths."""
        return RecipeLoader(self.catalog, texts, identity_change=_identity_change)

    def find(self, ref: str) -> RecipeFile:
        """The file of REF; only a release without a lane needs the site, for its default lane."""
        bare = "/" not in ref and not is_path(ref)
        file = self.catalog.find(ref, self._default_lane() if bare else None)
        if bare and file.path.stem != ref and file.path.parent.name == ref:
            note = diagnostic("REF003", f"{ref} means its current release, {ref}/{file.path.stem}")
            self.notes += [note] if note not in self.notes else []
        return file

    def _default_lane(self) -> str | None:
        named = self.site(None).default_lane
        if named is None or any((directory / named).is_dir() for directory in self.catalog.directories):
            return named
        raise UnknownDefaultLaneError(named, dict.fromkeys(ref.partition("/")[0] for ref in self.catalog.refs()))

    def reference(self, directory: Path | None) -> Path | None:
        """The reference site: in the directory of the recipe, else the first on the search path."""
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
        found = tuple(recipe_problems(loaded))
        is_valid, errors = checked = _errors(loaded, found)
        overridden = [d for d in errors if d.file and d.file.startswith(ASSIGNMENT_PREFIX)]
        if overridden:
            raise OverrideInvalidError(overridden[0])
        if not is_valid and sets and self._is_valid(ref):
            raise OverridesDisagreeError(sets, loaded.source.name, errors)
        if not is_valid or loaded.recipe is None:
            causes = CauseFinder(self.loader, lambda other: _errors(other, recipe_problems(other)))
            raise RecipeInvalidError(loaded.source.name, causes.placed(loaded, checked))
        noticed = [d for d in found if d.severity != "error"]
        noticed += [_shadow(loaded, path) for path in loaded.file.shadows]
        noticed += [_retired(loaded, loaded.recipe.status)] if loaded.recipe.status in RETIRED else []
        self.notes += [d for d in noticed if d not in self.notes]
        return loaded, loaded.recipe

    def _is_valid(self, ref: str) -> bool:
        loaded = self.loader.load_file(self.find(ref))
        return _errors(loaded, recipe_problems(loaded)).is_valid

    def shareable(self, ref: str, sets: Sequence[str] | None = None) -> tuple[LoadedRecipe, Recipe]:
        """`load` for printing, pinning and launching. Raises LiteralSecretError (exit 4)."""
        loaded, recipe = self.load(ref, sets)
        for literal in literal_secrets(loaded.root):
            if not recipe.lint.ignores(SECRET_RULE, ".".join(map(str, literal.path))):
                raise LiteralSecretError(loaded, literal)
        return loaded, recipe

    def compile(self, loaded: LoadedRecipe, recipe: Recipe, image_ref: ImageRef = "digest") -> Plan:
        """The plan for the site that applies. Raises CompileError (exit 4)."""
        return Compiler(self.site(loaded.file.directory), image_ref).plan(recipe, changed=loaded.changed)

    def pinned_plan(self, loaded: LoadedRecipe, recipe: Recipe) -> Plan:
        """The plan for the reference site, as in pinned commands."""
        return Compiler(load_site(None, self.reference(loaded.file.directory))).plan(recipe)

    def print_notes(self) -> None:
        self.console.diagnostics(self.notes, "dim")


def _errors(loaded: LoadedRecipe, found: Iterable[Diagnostic]) -> Checked:
    errors = tuple(finding for finding in found if finding.severity == "error")
    return Checked(loaded.recipe is not None and not errors, errors)


def shipped_recipes() -> Path:
    """In the wheel, its own; in a checkout, `recipes`."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "shipped_recipes"
    return inside if inside.is_dir() else package.parents[1] / "recipes"


def _retired(loaded: LoadedRecipe, status: str) -> Diagnostic:
    place = loaded.place(("status",))
    hint = "`list` shows the releases that replaced it"
    return diagnostic("REF002", f"this release is {status}", hint, place, "status")


def _shadow(loaded: LoadedRecipe, other: Path) -> Diagnostic:
    message = f"{other} also defines {other.parent.name}/{other.stem} and is ignored"
    hint = "the first directory of the search path wins"
    return diagnostic("REF001", message, hint, (loaded.source.name, 1, 1))


def state_directory(space: Workspace) -> Path:
    """Runs, journal and locks: in the site's `state`, else in the user's state; a named Station has a subdirectory."""
    home = _home(space)
    return home / "stations" / space.station if space.station else home


def learned_boots(space: Workspace) -> Path:
    """The boots that `fit --calibrate` has read, shared by all Stations."""
    return _home(space) / "boots.json"


def _home(space: Workspace) -> Path:
    named = space.site(None).state
    return expand_user(named) if named else space.environment.state_home / "gb300serve"


def _identity_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    effect = identity_change(before, after)
    return None if effect is None else effect.field
