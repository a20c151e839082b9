"""Plan → the object of `compile --json`."""

from collections.abc import Iterable
from typing import Any

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.plan.document import container_document, digest
from gb300serve.plan.model import Plan
from gb300serve.plan.nodes import variable
from gb300serve.render.docker_run import LEADER, RANK, docker_argv, machine_plans

SCHEMA = "gb300serve.plan/1"


def plan_document(plan: Plan, diagnostics: Iterable[Diagnostic] = ()) -> dict[str, Any]:
    """`gb300serve.plan/1`."""
    machines = machine_plans(plan) if plan.nodes > 1 else (plan,)
    document = {
        "schema": SCHEMA,
        "recipe": plan.recipe,
        "engine": plan.engine,
        "image": plan.image,
        "image_id": plan.image_id,
        "container": container_document(plan.container),
        "command": list(plan.command),
        "argv": _argv(machines[0]),
        "digest": digest(plan),
        "diagnostics": [found.as_json() for found in diagnostics],
    }
    if plan.nodes > 1:
        roles = zip(("leader", "worker"), (1, plan.nodes - 1), machines, strict=True)
        document["nodes"] = [{"role": role, "count": n, "argv": _argv(machine)} for role, n, machine in roles]
    return document


def _argv(plan: Plan) -> list[str]:
    """Of a machine among several, with `${LEADER_ADDRESS}` and `${NODE_RANK}` where each puts its own."""
    words = list(docker_argv(plan))
    for name in (LEADER, RANK) if plan.nodes > 1 else ():
        words = [word.replace(variable(name), f"${{{name}}}") for word in words]
    return words
