"""What is asked of the machine for one release."""

from collections.abc import Iterator

from gb300serve.host.facts import DiskSpace, ListeningSocket, MountSource, Patch, ReleaseFacts, SecretFact, TuningCache
from gb300serve.host.missing import Missing
from gb300serve.host.model import model_files
from gb300serve.host.ports import FileEntry, HostDocker, Machine
from gb300serve.host.sources import filesystems, tuning_cache
from gb300serve.host.wanted import Wanted


def release_facts(
    wanted: Wanted, machine: Machine, engine: HostDocker, secrets: tuple[SecretFact, ...]
) -> ReleaseFacts:
    """`secrets` are tried by whoever launches: their values are read on the client."""
    image, ports = engine.image(wanted.image), _ports(wanted, machine)
    root = machine.space("/")
    if isinstance(root, Missing):
        return ReleaseFacts(image, root, root, root, root, ports, secrets, root if wanted.tuning else None)
    return ReleaseFacts(
        image,
        models=tuple(model_files(model, machine) for model in wanted.models),
        disks=tuple(_disks(wanted, machine)),
        sources=tuple(MountSource(path, machine.entry(path) is not None) for path in dict.fromkeys(wanted.sources)),
        patches=tuple(_patch(path, digest, machine) for path, digest in wanted.patches),
        ports=ports,
        secrets=secrets,
        tuning_cache=_tuning_cache(*wanted.tuning, machine) if wanted.tuning else None,
    )


def _disks(wanted: Wanted, machine: Machine) -> Iterator[DiskSpace]:
    said = machine.read(filesystems.PATH)
    mounted = () if isinstance(said, Missing) else filesystems.parse(said)
    paths = [("model", model.path) for model in wanted.models] + [("cache", path) for path in wanted.caches]
    for use, path in paths:
        space = machine.space(path)
        if not isinstance(space, Missing):
            yield DiskSpace(use, path, space.free, space.total, filesystems.below(mounted, space.real))


def _patch(path: str, wanted: str, machine: Machine) -> Patch:
    found = machine.sha256(path)
    return Patch(path, wanted, None, found.why) if isinstance(found, Missing) else Patch(path, wanted, found)


def _ports(wanted: Wanted, machine: Machine) -> tuple[ListeningSocket, ...] | Missing:
    heard = [machine.heard(port) for port in wanted.ports]
    unknown = next((each for each in heard if isinstance(each, Missing)), None)
    return unknown or tuple(each for each in heard if isinstance(each, ListeningSocket))


def _tuning_cache(cache: str, identity: str, machine: Machine) -> TuningCache | Missing:
    """Below every engine version and architecture; a cache that root wrote may be closed to other users."""
    level: tuple[str, ...] = (f"{cache}/{tuning_cache.ROOT}",)
    closed: Missing | None = None
    for _ in range(tuning_cache.DEPTH):
        listed = [(path, machine.names(path)) for path in level if _is_directory(path, machine)]
        closed = next((names for _, names in listed if isinstance(names, Missing)), closed)
        level = tuple(f"{path}/{name}" for path, names in listed if not isinstance(names, Missing) for name in names)
    found = tuning_cache.matching(identity, level)
    return closed if closed and not found else TuningCache(cache, identity, found)


def _is_directory(path: str, machine: Machine) -> bool:
    entry = machine.entry(path)
    return isinstance(entry, Missing) or (isinstance(entry, FileEntry) and entry.directory)
