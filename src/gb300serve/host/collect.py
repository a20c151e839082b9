"""What is asked of the machine, in which order; the parsers say what the answers mean."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from gb300serve.host.facts import ContainerFact, Directory, GpuHolder, HostFacts
from gb300serve.host.missing import Missing
from gb300serve.host.ports import HostDocker, Machine
from gb300serve.host.sources import cgroup, compute_apps, docker_info, gpu_state, memory, memory_mode, numa
from gb300serve.host.sources.compute_apps import ComputeProcess
from gb300serve.host.sources.gpu_state import FIELDS, GpuState

T = TypeVar("T")
HOOK = "nvidia-container-runtime-hook"


def host_facts(machine: Machine, engine: HostDocker, state: Directory | Missing) -> HostFacts:
    """What is true whatever is launched; `state` is the directory of this tool, which is always here."""
    info = engine.info()
    return HostFacts(
        docker=info if isinstance(info, Missing) else docker_info.parse(info),
        gpus=gpu_states(machine),
        processes=_processes(machine, engine),
        memory_mode=_parsed(machine.read(memory_mode.PATH), memory_mode.parse),
        hbm_page_cache=_hbm_page_cache(machine),
        memory=_parsed(machine.read(memory.PATH), memory.parse),
        memlock=machine.memlock(),
        state=state,
        gpu_hook=machine.program(HOOK),
    )


def _parsed(said: str | Missing, parse: Callable[[str], T | Missing]) -> T | Missing:
    return said if isinstance(said, Missing) else parse(said)


def gpu_states(machine: Machine, fields: tuple[str, ...] = FIELDS) -> tuple[GpuState, ...] | Missing:
    """The GPUs; a driver that does not know one of the `fields` is asked again without it."""
    said = machine.output(gpu_state.command(fields))
    if not isinstance(said, Missing):
        return gpu_state.parse(said)
    fewer = gpu_state.without_rejected(fields, said.why)
    return said if fewer is None else gpu_states(machine, fewer)


def _processes(machine: Machine, engine: HostDocker) -> tuple[GpuHolder, ...] | Missing:
    """With the names of their containers; the engine is asked only where there are any."""
    found = compute_processes(machine)
    if isinstance(found, Missing) or not any(each.container for each in found):
        return found
    known = engine.containers()
    return found if isinstance(known, Missing) else tuple(_named(each, known) for each in found)


def compute_processes(machine: Machine) -> tuple[GpuHolder, ...] | Missing:
    """The compute processes with the ids of their containers."""
    said = machine.output(compute_apps.COMMAND)
    found = said if isinstance(said, Missing) else compute_apps.parse(said)
    return found if isinstance(found, Missing) else tuple(_holder(each, machine) for each in found)


def _holder(process: ComputeProcess, machine: Machine) -> GpuHolder:
    said = machine.read(cgroup.path(process.pid))
    return GpuHolder(process, None if isinstance(said, Missing) else cgroup.container(said))


def _named(holder: GpuHolder, known: Mapping[str, ContainerFact]) -> GpuHolder:
    found = known.get(holder.container or "")
    return holder if found is None else replace(holder, name=found.name, image=found.image, since=found.since)


def _hbm_page_cache(machine: Machine) -> int | Missing:
    """0 where every node has CPUs: the driver keeps the GPU's memory to itself."""
    names = machine.names(numa.NODES)
    if isinstance(names, Missing):
        return names
    cached = 0
    for node in numa.nodes(names):
        if machine.read(numa.cpulist(node)) == "\n":
            said = machine.read(numa.meminfo(node))
            cached += 0 if isinstance(said, Missing) else numa.page_cache(said)
    return cached
