"""Plan → the object of `compile --json`."""

from collections.abc import Iterable
from typing import Any

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.plan.document import container_document, digest
from gb300serve.plan.model import Plan
from gb300serve.render.docker_run import docker_argv

SCHEMA = "gb300serve.plan/1"


def plan_document(plan: Plan, diagnostics: Iterable[Diagnostic] = ()) -> dict[str, Any]:
    """`gb300serve.plan/1`."""
    return {
        "schema": SCHEMA,
        "recipe": plan.recipe,
        "engine": plan.engine,
        "image": plan.image,
        "image_id": plan.image_id,
        "container": container_document(plan.container),
        "command": list(plan.command),
        "argv": list(docker_argv(plan)),
        "digest": digest(plan),
        "diagnostics": [found.as_json() for found in diagnostics],
    }
