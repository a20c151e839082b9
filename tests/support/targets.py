"""Plans that the tests of every target share."""

from typing import Any

from gb300serve.plan.model import ContainerPlan, Plan, Secret
from gb300serve.render.target import Gap, TargetService

SERVING = TargetService(8000, 454.5)
SECRETS = (Secret("K", env="K"), Secret("L", env="OTHER"), Secret("M", file="/keys/m"))
# Secrets inside words of the engine, and what a target's own syntax would replace.
SECRET_WORDS = ("--a", "${secret:K}", "--b=x${secret:L}!${secret:M}'", "${secret:NONE}", "$K", "$$", "%n", "$(K)")


def with_container(command: tuple[str, ...] = (), name: str = "bench", **options: Any) -> Plan:
    """A plan with these container options."""
    return Plan(
        recipe="bench/v1", lane="bench", release="v1", engine="vllm", engine_version=None, image="a/b:c", image_id=None,
        container=ContainerPlan(name, **options), command=command, served_names=(), port=None, model_path=None,
    )  # fmt: skip


def codes(gaps: tuple[Gap, ...]) -> list[tuple[str, str]]:
    """Code and place of each."""
    return [(gap.code, ".".join(map(str, gap.path))) for gap in gaps]
