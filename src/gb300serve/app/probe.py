"""Probe the server of a running lane."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gb300serve.adapters.system import at_once
from gb300serve.app.hosts import Hosts, On
from gb300serve.app.lanes import find_lane
from gb300serve.app.receipts import launched
from gb300serve.core.errors import Action, CommandLineError, MachineError
from gb300serve.core.text import suggestion
from gb300serve.lifecycle.identity import endpoint_of, served_names
from gb300serve.lifecycle.launch import option_values, release_of
from gb300serve.lifecycle.reconcile import is_live
from gb300serve.lifecycle.tools import Tools
from gb300serve.probe.endpoint import ServerEndpoint
from gb300serve.probe.suite import ProbeResult, ProbeRun, standard_probes
from gb300serve.recipe.model import ProbeSection, Recipe


class NotServedError(MachineError):
    """The container of the lane does not run, or no port leads to it."""

    def __init__(self, container: str, why: str) -> None:
        super().__init__(f"{container} cannot be probed: {why}", suggest=(Action("status", ref=""),))


class UnknownProbeError(CommandLineError):
    """`--only` names a probe that does not exist."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        meant = suggestion(name, known)
        hint = f"did you mean {meant}?" if meant else f"the probes are {', '.join(known)}"
        super().__init__(f"no probe is called {name}", hint=hint)


@dataclass(frozen=True)
class Probing:
    """The probes of one server, ready to be sent."""

    release: str
    container: str
    endpoint: ServerEndpoint
    run: ProbeRun
    probes: tuple[ProbeSection, ...]

    def results(self) -> Iterator[ProbeResult]:
        yield from self.run.results(self.probes)


def probes_of(recipe: Recipe, only: Sequence[str] = (), *, short: bool = False) -> tuple[ProbeSection, ...]:
    """The probes of every lane and those of the recipe, which replace probes of the same name."""
    known = {probe.name: probe for probe in (*standard_probes(), *recipe.probes)}
    for name in only:
        if name not in known:
            raise UnknownProbeError(name, tuple(known))
    return tuple(p for p in known.values() if (not only or p.name in only) and (p.short or not short))


def probe_run(tools: Tools, endpoint: ServerEndpoint, names: tuple[str, ...], command: tuple[str, ...]) -> ProbeRun:
    """Sends probes to the endpoint; `names` are the served names of the model, `command` starts the engine."""
    parsed = bool(option_values(command, "--reasoning-parser"))
    return ProbeRun(tools.http, tools.clock, endpoint, names, parsed, at_once)


def lane_probes(ref: str | None, hosts: Hosts, on: On | None, only: Sequence[str], *, short: bool) -> Probing:
    """The probes of a lane, or of the only one. Raises MachineError (6), BackendError (7)."""
    workspace = hosts.workspace
    host, container = find_lane("probe", ref, hosts, on)
    if not is_live(container):
        raise NotServedError(container.name, "it does not run")
    recipe, launch = launched(container, ref, workspace, host.on)
    endpoint = endpoint_of(container, replace(launch, address=hosts.address(host.on)))
    if endpoint is None:
        raise NotServedError(container.name, "no host port leads to its engine")
    run = probe_run(host.tools(), endpoint, served_names(container, launch), container.command)
    return Probing(release_of(container), container.name, endpoint, run, probes_of(recipe, only, short=short))
