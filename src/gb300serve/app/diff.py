"""The two releases of `diff`: compiled, with their recorded facts."""

from collections.abc import Sequence

from gb300serve.app.fit import Fitter
from gb300serve.app.workspace import Workspace
from gb300serve.compare.costs import RecordedIdentity, ReleaseSummary, recorded_identity, tuning_range
from gb300serve.compare.diff import Side
from gb300serve.fit.checkpoint import Checkpoint
from gb300serve.fit.result import FitResult
from gb300serve.lint.run import rule_findings
from gb300serve.plan.model import digest
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.model import Recipe
from gb300serve.render.docker_run import argument_groups

# The rules about failed attempts in the record.
_LEDGER = ("REC001", "REC002", "REC003", "REC004")


def side(space: Workspace, ref: str, sets: Sequence[str] = ()) -> Side:
    """One release, with `sets` applied. Raises RecipeError, CommandLineError, CompileError."""
    loaded, recipe = space.shareable(ref, sets)
    plan = space.compile(loaded, recipe)
    command = tuple(argument_groups(plan))
    return Side(plan.recipe, loaded.root, command, digest(plan), facts(space, loaded, recipe, sets))


def facts(space: Workspace, loaded: LoadedRecipe, recipe: Recipe, sets: Sequence[str] = ()) -> ReleaseSummary:
    """The figures and records of a release."""
    fitter = Fitter(space)
    subject = fitter.subject(loaded, recipe)
    known = fitter.checkpoint(subject, sets)
    found = fitter.result(loaded, recipe, sets)
    total = recipe.boot.usual
    return ReleaseSummary(
        engine_version=recipe.engine.version,
        memory=found.plan if found else None,
        boot_seconds=total.seconds if total else None,
        tuning_seconds=tuning_range(known, found.request) if known and found else None,
        recorded=_from_recipe(loaded, recipe) or _from_boots(known, recipe, found),
        evidence=() if loaded.changed else tuple(recipe.evidence),
        ledger=tuple(rule_findings(subject, _LEDGER)),
    )


def _from_recipe(loaded: LoadedRecipe, recipe: Recipe) -> RecordedIdentity | None:
    """The identity in the recipe itself; an inherited one belongs to another release."""
    cache = recipe.boot.tuning_cache
    own = loaded.place(("boot", "tuning_cache")).file == loaded.source.name
    return RecordedIdentity(cache.identity, recipe.ref) if cache is not None and own and not loaded.changed else None


def _from_boots(known: Checkpoint | None, recipe: Recipe, found: FitResult | None) -> RecordedIdentity | None:
    return recorded_identity(known, found.request, recipe.engine.options) if known and found else None
