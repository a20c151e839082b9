"""Targets of `compile --to` beside shell and JSON: what they need of a recipe, what they left out as diagnostics."""

from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.engines.registry import engine
from gb300serve.plan.model import Plan, with_secret_placeholders
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.model import Recipe
from gb300serve.render.compose import compose
from gb300serve.render.kubernetes.manifests import kubernetes
from gb300serve.render.quadlet import quadlet
from gb300serve.render.target import Gap, Target, TargetService

TARGETS: dict[str, Target] = {"compose": compose, "quadlet": quadlet, "kubernetes": kubernetes}


def targeted(to: str, plan: Plan, loaded: LoadedRecipe, recipe: Recipe) -> tuple[str, tuple[Diagnostic, ...]]:
    """The file's text, and what it does not say."""
    rendered = TARGETS[to](plan, serving_of(recipe))
    return rendered.text, tuple(place_gap(gap, loaded) for gap in rendered.gaps)


def serving_of(recipe: Recipe) -> TargetService:
    """The engine's own port, and how long the recipe says that a boot takes."""
    boot = recipe.boot
    phases = sum(float(phase.seconds) for phase in boot.phases.values())
    seconds = float(boot.total.seconds) if boot.total else phases or None
    return TargetService(engine(recipe.engine.name).port(with_secret_placeholders(recipe.engine.options)), seconds)


def place_gap(gap: Gap, loaded: LoadedRecipe) -> Diagnostic:
    """The gap with its place in the recipe."""
    path = ".".join(map(str, gap.path))
    return diagnostic(gap.code, gap.message, gap.hint, loaded.place(gap.path), path)
