"""The lane that a command means: by REF, else the only running one, on Docker or on the simulated Station."""

import json
from collections.abc import Iterator

from gb300serve.app.hosts import ContainerHost, Hosts, On
from gb300serve.app.state import StateDirectory
from gb300serve.app.workspace import Workspace
from gb300serve.core.errors import Action, BackendError, MachineError
from gb300serve.core.redaction import literal_secret
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.launch import option_values
from gb300serve.lifecycle.reconcile import is_live
from gb300serve.lifecycle.status import choose_container

# Shorter values are placeholders, and hiding `x` would leave nothing of a log.
_SHORTEST = 4
_SECRET_FLAGS = ("--api-key", "--admin-api-key", "--hf-token")


class NoLaneError(MachineError):
    """No container of ours fits."""

    def __init__(self, ref: str | None) -> None:
        message = f"no container of {ref} exists" if ref else "no lane is running"
        super().__init__(message, suggest=(Action("status", ref=""),))


class SeveralHostsError(MachineError):
    """A lane runs on Docker and another one on the simulated Station."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(f"several lanes are running: {', '.join(names)}", hint="choose with --on docker or --on sim")


def find_lane(
    verb: str, ref: str | None, workspace: Workspace, hosts: Hosts, on: On | None
) -> tuple[ContainerHost, Container]:
    """Raises MachineError (6), or BackendError (7) where Docker alone was asked."""
    lane, release = _named(ref, workspace)
    found = list(_candidates(verb, lane, release, hosts, on))
    running = [(host, container) for host, container in found if is_live(container)]
    if len(running) > 1:
        raise SeveralHostsError([f"{container.name} ({host.on})" for host, container in running])
    if not (running or found):
        raise NoLaneError(ref)
    return (running or found)[0]


def _candidates(
    verb: str, lane: str | None, release: str | None, hosts: Hosts, on: On | None
) -> Iterator[tuple[ContainerHost, Container]]:
    names = hosts.names(on)
    for name in names:
        try:
            host = hosts.at(name)
            container = choose_container(verb, host.backend.containers(), lane, release)
        except BackendError:
            if len(names) == 1:
                raise
            continue  # a machine with a simulated lane and no Docker is fine
        if container is not None:
            yield host, container


def _named(ref: str | None, workspace: Workspace) -> tuple[str | None, str | None]:
    if ref is None:
        return None, None
    _, recipe = workspace.load(ref)
    return recipe.lane, recipe.release


def held_secrets(container: Container, state: StateDirectory) -> tuple[str, ...]:
    """Secret values of a container: named by its recipe, recognised by name or shape, and keys in its arguments.

    SGLang prints its whole `server_args`, `api_key='…'` among them.
    """
    named = set(_recorded_secrets(container, state))
    environment = [value for name, value in container.env.items() if name in named or literal_secret(name, value)]
    arguments = [value for flag in _SECRET_FLAGS for value in option_values(container.command, flag)]
    return tuple({value: None for value in (*environment, *arguments) if len(value) >= _SHORTEST})


def _recorded_secrets(container: Container, state: StateDirectory) -> Iterator[str]:
    """Names of secrets in the plans of the container's runs; none where these cannot be read."""
    directory = state.runs.directory
    try:
        runs = [run.run for run in state.runs.all() if run.container_id == container.id]
        plans = [json.loads(state.disk.read(directory / run / "plan.json") or b"{}") for run in runs]
    except (OSError, ValueError):
        return
    for plan in plans:
        for secret in plan.get("container", {}).get("secrets", ()):
            yield secret["name"]
