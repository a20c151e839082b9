"""A checkpoint's directory, looked at file by file; no tensor is read."""

from gb300serve.host.missing import Missing
from gb300serve.host.ports import FileEntry, Machine
from gb300serve.host.sources import model_files as source
from gb300serve.host.sources import safetensors
from gb300serve.host.sources.model_files import ModelFiles
from gb300serve.host.wanted import Model


def model_files(model: Model, machine: Machine) -> ModelFiles:
    """What is there of a checkpoint, and what is missing."""
    place = machine.entry(model.path)
    if place is None:
        return ModelFiles(model, exists=False)
    names = machine.names(model.path)
    if isinstance(place, Missing) or isinstance(names, Missing):
        why = place.why if isinstance(place, Missing) else names.why if isinstance(names, Missing) else ""
        return ModelFiles(model, problem=why)
    wanted = _wanted(model.path, names, machine)
    found = {name: machine.entry(f"{model.path}/{name}") for name in wanted}
    entries = {name: entry for name, entry in found.items() if isinstance(entry, FileEntry) and not entry.directory}
    config = machine.read(f"{model.path}/{source.CONFIG}")
    metadata = machine.read(f"{model.path}/{source.METADATA}")
    return ModelFiles(
        model,
        config=not isinstance(config, Missing) and source.is_config(config),
        shards=len(wanted),
        bytes=sum(entry.size for entry in entries.values()),
        absent=tuple(name for name in wanted if name not in entries),
        cut=tuple(name for name, entry in entries.items() if _cut(f"{model.path}/{name}", entry, machine)),
        linked_away=tuple(name for name, entry in entries.items() if not entry.real.startswith(f"{place.real}/")),
        revision=source.revision(place.real, None if isinstance(metadata, Missing) else metadata),
    )


def _wanted(path: str, names: tuple[str, ...], machine: Machine) -> tuple[str, ...]:
    """The shards that the index names; every safetensors file where there is no index."""
    index = machine.read(f"{path}/{source.INDEX}") if source.INDEX in names else None
    named = source.indexed(index) if isinstance(index, str) else None
    return tuple(name for name in names if name.endswith(".safetensors")) if named is None else named


def _cut(path: str, entry: FileEntry, machine: Machine) -> bool:
    begin = machine.begin(path, safetensors.LENGTH)
    size = None if isinstance(begin, Missing) else safetensors.header_size(begin)
    if size is None:
        return True
    header = machine.begin(path, safetensors.LENGTH + size)
    return isinstance(header, Missing) or safetensors.whole_size(header) != entry.size
