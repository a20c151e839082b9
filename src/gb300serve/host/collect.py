"""Collect the facts of the host and of one release."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from gb300serve.core.values import Missing
from gb300serve.host import linux, model_files, nvidia
from gb300serve.host.facts import (
    ContainerFact,
    Directory,
    DiskSpace,
    FileEntry,
    GpuHolder,
    HostDocker,
    HostFacts,
    ListeningSocket,
    Machine,
    MountSource,
    Patch,
    ReleaseFacts,
    SecretFact,
    TuningCache,
)
from gb300serve.host.model_files import HostRequirements, Model, ModelFiles
from gb300serve.host.nvidia import GPU_STATE_FIELDS, ComputeProcess, GpuState

T = TypeVar("T")
HOOK = "nvidia-container-runtime-hook"


def host_facts(machine: Machine, engine: HostDocker, state: Directory | Missing) -> HostFacts:
    """Facts that do not depend on the release; `state` is the state directory of this tool."""
    info = engine.info()
    return HostFacts(
        docker=info if isinstance(info, Missing) else linux.parse_docker_info(info),
        gpus=gpu_states(machine),
        processes=_processes(machine, engine),
        memory_mode=_parsed(machine.read(nvidia.MEMORY_MODE_PATH), nvidia.parse_memory_mode),
        hbm_page_cache=_hbm_page_cache(machine),
        memory=_parsed(machine.read(linux.MEMINFO_PATH), linux.parse_meminfo),
        memlock=machine.memlock(),
        state=state,
        gpu_hook=machine.program(HOOK),
    )


def _parsed(output: str | Missing, parse: Callable[[str], T | Missing]) -> T | Missing:
    return output if isinstance(output, Missing) else parse(output)


def gpu_states(machine: Machine, fields: tuple[str, ...] = GPU_STATE_FIELDS) -> tuple[GpuState, ...] | Missing:
    """The GPUs; fields that the driver rejects are left out."""
    output = machine.output(nvidia.gpu_state_command(fields))
    if not isinstance(output, Missing):
        return nvidia.parse_gpu_states(output)
    fewer = nvidia.without_rejected(fields, output.why)
    return output if fewer is None else gpu_states(machine, fewer)


def _processes(machine: Machine, engine: HostDocker) -> tuple[GpuHolder, ...] | Missing:
    holders = compute_processes(machine)
    if isinstance(holders, Missing) or not any(holder.container for holder in holders):
        return holders
    known = engine.containers()
    return holders if isinstance(known, Missing) else tuple(_named(holder, known) for holder in holders)


def compute_processes(machine: Machine) -> tuple[GpuHolder, ...] | Missing:
    """The compute processes with the ids of their containers."""
    processes = _parsed(machine.output(nvidia.COMPUTE_APPS_COMMAND), nvidia.parse_compute_apps)
    return processes if isinstance(processes, Missing) else tuple(_holder(process, machine) for process in processes)


def _holder(process: ComputeProcess, machine: Machine) -> GpuHolder:
    output = machine.read(f"/proc/{process.pid}/cgroup")
    return GpuHolder(process, None if isinstance(output, Missing) else linux.container_of_cgroup(output))


def shared_memory(machine: Machine, container: str, processes: Iterable[int]) -> int | Missing:
    """Bytes of shared memory of a container's processes; Missing unless all of them can be read.

    `processes` are the ids that the container's engine reports. An engine in another namespace counts them differently,
    so only processes in the container's cgroup count.
    """
    found = []
    for process in sorted(processes):
        directory = f"/proc/{process}"
        cgroup, status = machine.read(f"{directory}/cgroup"), machine.read(f"{directory}/status")
        if isinstance(cgroup, Missing) or isinstance(status, Missing):
            if machine.entry(directory) is None:
                continue  # it has ended
            return next(text for text in (cgroup, status) if isinstance(text, Missing))
        held = linux.parse_shared_memory(status)
        if held is None:
            return Missing(f"{directory}/status has no RssShmem")
        if linux.container_of_cgroup(cgroup) == container:
            found.append(held)
    return sum(found) if found else _NO_PROCESS


_NO_PROCESS = Missing("/proc does not show the processes of the container")


def _named(holder: GpuHolder, known: Mapping[str, ContainerFact]) -> GpuHolder:
    fact = known.get(holder.container or "")
    return holder if fact is None else replace(holder, name=fact.name, image=fact.image, since=fact.since)


def _hbm_page_cache(machine: Machine) -> int | Missing:
    # Memory of the GPU is a NUMA node without CPUs; in CDMM there is none.
    names = machine.names(linux.NUMA_NODES)
    if isinstance(names, Missing):
        return names
    cached = 0
    for node in linux.numa_nodes(names):
        if machine.read(f"{linux.NUMA_NODES}/{node}/cpulist") == "\n":
            output = machine.read(f"{linux.NUMA_NODES}/{node}/meminfo")
            cached += 0 if isinstance(output, Missing) else linux.numa_page_cache(output)
    return cached


class RemoteMachine:
    """A `Machine` that cannot be read from here: all its facts are missing for the same reason."""

    def __init__(self, why: str) -> None:
        self._missing = Missing(why, asked=False)

    def _unknown(self, *_args: object, **_kwargs: object) -> Missing:
        return self._missing

    output = read = begin = names = entry = space = sha256 = memlock = listener = _unknown

    def program(self, name: str) -> str | None:  # noqa: ARG002 - of the protocol
        return None


class UnavailableDocker:
    """A `HostDocker` that does not respond."""

    def __init__(self, why: str) -> None:
        self._missing = Missing(why)

    def _unknown(self, *_args: object, **_kwargs: object) -> Missing:
        return self._missing

    info = image = containers = _unknown


def collect_model_files(model: Model, machine: Machine) -> ModelFiles:
    """The files of a checkpoint that exist, and those that are missing."""
    place = machine.entry(model.path)
    if place is None:
        return ModelFiles(model, exists=False)
    if isinstance(place, Missing):
        return ModelFiles(model, problem=place.why)
    names = machine.names(model.path)
    if isinstance(names, Missing):
        return ModelFiles(model, problem=names.why)
    shards = _shard_names(model.path, names, machine)
    paths = {name: machine.entry(f"{model.path}/{name}") for name in shards}
    entries = {name: entry for name, entry in paths.items() if isinstance(entry, FileEntry) and not entry.directory}
    config = machine.read(f"{model.path}/{model_files.CONFIG}")
    metadata = machine.read(f"{model.path}/{model_files.METADATA}")
    return ModelFiles(
        model,
        config=not isinstance(config, Missing) and model_files.is_config(config),
        shards=len(shards),
        bytes=sum(entry.size for entry in entries.values()),
        absent=tuple(name for name in shards if name not in entries),
        cut=tuple(name for name, entry in entries.items() if _cut(f"{model.path}/{name}", entry, machine)),
        linked_away=tuple(name for name, entry in entries.items() if not entry.real.startswith(f"{place.real}/")),
        revision=model_files.revision(place.real, None if isinstance(metadata, Missing) else metadata),
    )


def _shard_names(path: str, names: tuple[str, ...], machine: Machine) -> tuple[str, ...]:
    """The shards that the index names; every safetensors file if the index is missing."""
    index = machine.read(f"{path}/{model_files.INDEX}") if model_files.INDEX in names else None
    named = model_files.indexed(index) if isinstance(index, str) else None
    return tuple(name for name in names if name.endswith(".safetensors")) if named is None else named


def _cut(path: str, entry: FileEntry, machine: Machine) -> bool:
    begin = machine.begin(path, model_files.HEADER_LENGTH_BYTES)
    size = None if isinstance(begin, Missing) else model_files.header_size(begin)
    if size is None:
        return True
    header = machine.begin(path, model_files.HEADER_LENGTH_BYTES + size)
    return isinstance(header, Missing) or model_files.whole_size(header) != entry.size


def release_facts(
    required: HostRequirements, machine: Machine, engine: HostDocker, secrets: tuple[SecretFact, ...]
) -> ReleaseFacts:
    """`secrets` were read on the client."""
    image, ports = engine.image(required.image), _ports(required, machine)
    root = machine.space("/")
    if isinstance(root, Missing):
        return ReleaseFacts(image, root, root, root, root, ports, secrets, root if required.tuning else None)
    return ReleaseFacts(
        image,
        models=tuple(collect_model_files(model, machine) for model in required.models),
        disks=tuple(_disks(required, machine)),
        sources=tuple(MountSource(path, machine.entry(path) is not None) for path in dict.fromkeys(required.sources)),
        patches=tuple(_patch(path, digest, machine) for path, digest in required.patches),
        ports=ports,
        secrets=secrets,
        tuning_cache=_tuning_cache(*required.tuning, required.tuning_sha256, machine) if required.tuning else None,
    )


def _disks(required: HostRequirements, machine: Machine) -> Iterator[DiskSpace]:
    output = machine.read(linux.MOUNTINFO_PATH)
    mounted = () if isinstance(output, Missing) else linux.parse_mountinfo(output)
    paths = [("model", model.path) for model in required.models] + [("cache", path) for path in required.caches]
    for use, path in paths:
        space = machine.space(path)
        if not isinstance(space, Missing):
            yield DiskSpace(use, path, space.free, space.total, linux.filesystem_of(mounted, space.real))


def _patch(path: str, pinned: str, machine: Machine) -> Patch:
    digest = machine.sha256(path)
    return Patch(path, pinned, None, digest.why) if isinstance(digest, Missing) else Patch(path, pinned, digest)


def _ports(required: HostRequirements, machine: Machine) -> tuple[ListeningSocket, ...] | Missing:
    sockets = [machine.listener(port) for port in required.ports]
    unknown = next((socket for socket in sockets if isinstance(socket, Missing)), None)
    return unknown or tuple(socket for socket in sockets if isinstance(socket, ListeningSocket))


def _tuning_cache(cache: str, identity: str, wanted: str | None, machine: Machine) -> TuningCache | Missing:
    """Below every engine version and architecture; a cache that root wrote may be closed to other users."""
    level: tuple[str, ...] = (f"{cache}/{model_files.TUNING_CACHE_ROOT}",)
    closed: Missing | None = None
    for _ in range(model_files.TUNING_CACHE_DEPTH):
        listed = [(path, machine.names(path)) for path in level if _is_directory(path, machine)]
        closed = next((names for _, names in listed if isinstance(names, Missing)), closed)
        level = tuple(f"{path}/{name}" for path, names in listed if not isinstance(names, Missing) for name in names)
    directory = model_files.matching_set(identity, level)
    if directory is None:
        return closed or TuningCache(cache, identity, None)
    names = machine.names(directory)
    sets = () if isinstance(names, Missing) else (name for name in names if name.endswith(".json"))
    digests = (machine.sha256(f"{directory}/{name}") for name in sets)
    known = tuple(digest for digest in digests if not isinstance(digest, Missing))
    return TuningCache(cache, identity, directory, known, wanted)


def _is_directory(path: str, machine: Machine) -> bool:
    entry = machine.entry(path)
    return isinstance(entry, Missing) or (isinstance(entry, FileEntry) and entry.directory)
