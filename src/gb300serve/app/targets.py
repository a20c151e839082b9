"""`compile --to compose|quadlet|kubernetes`: the file, and its gaps as diagnostics."""

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


def render_target(to: str, plan: Plan, loaded: LoadedRecipe, recipe: Recipe) -> tuple[str, tuple[Diagnostic, ...]]:
    """The text of the file, and diagnostics of its gaps."""
    rendered = TARGETS[to](plan, service_of(recipe))
    return rendered.text, tuple(gap_diagnostic(gap, loaded) for gap in rendered.gaps)


def service_of(recipe: Recipe) -> TargetService:
    """The engine's port, and the boot time that the recipe expects."""
    boot = recipe.boot
    phases = sum(float(phase.seconds) for phase in boot.phases.values())
    seconds = boot.longest_seconds or phases or None
    return TargetService(engine(recipe.engine.name).port(with_secret_placeholders(recipe.engine.options)), seconds)


def gap_diagnostic(gap: Gap, loaded: LoadedRecipe) -> Diagnostic:
    """The gap with its position in the recipe."""
    path = ".".join(map(str, gap.path))
    return diagnostic(gap.code, gap.message, gap.hint, loaded.place(gap.path), path)
