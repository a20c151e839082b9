"""Values of secrets that a container holds: what is shown of its log does without them."""

import json
from collections.abc import Iterator

from gb300serve.cli.services import Services
from gb300serve.core.redaction import literal_secret
from gb300serve.lifecycle.ports import Container
from gb300serve.lifecycle.words import values

# Shorter ones are placeholders, and hiding `x` would leave nothing of a log.
_SHORTEST = 4
_FLAGS = ("--api-key", "--admin-api-key", "--hf-token")


def held_secrets(container: Container, services: Services) -> tuple[str, ...]:
    """Those that its recipe names as secrets, those whose name or shape tells, and keys among the engine's words.

    SGLang prints its whole `server_args`, `api_key='…'` among them.
    """
    named = set(_named(container, services))
    environment = [value for name, value in container.env.items() if name in named or literal_secret(name, value)]
    words = [value for flag in _FLAGS for value in values(container.command, flag)]
    return tuple({value: None for value in (*environment, *words) if len(value) >= _SHORTEST})


def _named(container: Container, services: Services) -> Iterator[str]:
    """Names of secrets in the plans that the container's runs were launched from; nothing where they cannot be read."""
    directory = services.runs.directory
    try:
        runs = [each.run for each in services.runs.all() if each.container_id == container.id]
        plans = [json.loads(services.disk.read(directory / run / "plan.json") or b"{}") for run in runs]
    except (OSError, ValueError):
        return
    for plan in plans:
        for secret in plan.get("container", {}).get("secrets", ()):
            yield secret["name"]
