"""What to look at for a plan: its directories, files, ports and cache."""

from collections.abc import Iterator

from gb300serve.host.wanted import Model, Wanted
from gb300serve.plan.model import Mount, Plan
from gb300serve.recipe.model import Recipe

# Where vLLM keeps what it compiles and tunes.
ENGINE_CACHE = "/root/.cache/vllm"


def wanted(plan: Plan, recipe: Recipe, ports: tuple[int, ...]) -> Wanted:
    """The plan's own words on the host; `recipe` says which of them are checkpoints, and of which revision.

    `ports` are those of the host that the container takes.
    """
    mounts = plan.container.mounts
    caches = tuple(mount.source for mount in mounts if not mount.read_only)
    tuning = recipe.boot.tuning_cache
    cache = next((mount.source for mount in mounts if mount.target.rstrip("/") == ENGINE_CACHE), None)
    return Wanted(
        plan.image,
        models=tuple(_models(plan, recipe)),
        caches=caches,
        sources=tuple(mount.source for mount in mounts),
        patches=tuple(dict.fromkeys(pair for mount in mounts for pair in _patches(mount))),
        ports=ports,
        tuning=(cache, tuning.identity) if tuning and cache else None,
    )


def _models(plan: Plan, recipe: Recipe) -> Iterator[Model]:
    """The compiled path of a model is the source of its mount; a first model without one has it in the plan."""
    sources = {mount.target: mount.source for mount in plan.container.mounts}
    for number, model in enumerate(recipe.all_models):
        path = sources.get(model.mount or "") or (plan.model_path if number == 0 else None)
        if model.path and path:
            yield Model(path, model.repo, model.revision)


def _patches(mount: Mount) -> Iterator[tuple[str, str]]:
    if isinstance(mount.sha256, str):
        yield mount.source, mount.sha256
    elif mount.sha256:
        yield from ((f"{mount.source}/{name}", digest) for name, digest in mount.sha256.items())
