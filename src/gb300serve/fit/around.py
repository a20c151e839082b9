"""What may change a launch's memory besides the engine's options: patches over the image, variables, raw words."""

from gb300serve.core.values import compact_json
from gb300serve.recipe.model import Recipe

_CACHES = "/root/.cache"
_HARMLESS = frozenset(
    {"VLLM_LOGGING_LEVEL", "VLLM_API_KEY", "VLLM_AUTOTUNE_CACHE_KEY", "VLLM_CACHE_ROOT", "VLLM_HOST_IP", "VLLM_PORT"}
)
_ENGINE = ("VLLM_", "PYTORCH_", "FLASHINFER_", "CUDA_")


def around(recipe: Recipe, variant: str | None) -> tuple[tuple[str, str], ...]:
    """Name and value of each; the mounts of a patch that is known as `variant` are part of that."""
    found = [
        ("container.mounts", mount.target)
        for mount in recipe.container.mounts
        if variant is None and not mount.target.startswith(_CACHES)
    ]
    found += [
        (f"container.env.{name}", value)
        for name, value in recipe.container.env.items()
        if name.startswith(_ENGINE) and name not in _HARMLESS
    ]
    if recipe.engine.extra_args:
        found.append(("engine.extra_args", compact_json(recipe.engine.extra_args)))
    return tuple(found)
