"""`nvidia-smi -L`: the GPUs by name and UUID."""

import re
from dataclasses import dataclass

_LINE = re.compile(r"^GPU \d+: (?P<name>.+) \(UUID: (?P<uuid>GPU-[0-9a-f-]+)\)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Gpu:
    """`name` is the product's, such as `NVIDIA GB300`."""

    name: str
    uuid: str


def listed(text: str) -> tuple[Gpu, ...]:
    """The GPUs that the output lists, in its order."""
    return tuple(Gpu(match["name"], match["uuid"]) for match in _LINE.finditer(text))


def named(gpus: tuple[Gpu, ...], name: str) -> tuple[Gpu, ...]:
    """Those whose product name has `name` as a word: `GB300` means `NVIDIA GB300`."""
    return tuple(gpu for gpu in gpus if name.casefold() in gpu.name.casefold().split())
