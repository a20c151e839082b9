"""Facts of the host, as values. Sizes in bytes, power in watts; None where a tool printed no value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gb300serve.core.values import Missing
from gb300serve.host.linux import DockerInfo, Filesystem, HostMemory, Limit
from gb300serve.host.model_files import ModelFiles
from gb300serve.host.nvidia import ComputeProcess, GpuState


@dataclass(frozen=True, slots=True)
class ContainerFact:
    """A container that Docker knows: the image reference it was created from, and since when (UTC) it runs."""

    name: str
    image: str
    since: str | None = None


@dataclass(frozen=True, slots=True)
class GpuHolder:
    """A compute process on a GPU and the container it belongs to: its id, and the rest where Docker knows it."""

    process: ComputeProcess
    container: str | None = None
    name: str | None = None
    image: str | None = None
    since: str | None = None
    """UTC: the container runs since then."""


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """The disk of a directory; `use` is `model` or `cache`, `path` is that of the plan."""

    use: str
    path: str
    free: int
    total: int
    filesystem: Filesystem | None = None
    """None where the system does not list its mounts."""


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory that must be writable. `problem` is the reason if it is not."""

    path: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Facts of the machine that do not depend on the release."""

    docker: DockerInfo | Missing
    gpus: tuple[GpuState, ...] | Missing
    processes: tuple[GpuHolder, ...] | Missing
    memory_mode: str | Missing
    """CoherentGPUMemoryMode of the driver: `driver` is CDMM, empty on a GPU without coherent memory."""
    hbm_page_cache: int | Missing
    memory: HostMemory | Missing
    memlock: Limit | Missing
    state: Directory | Missing
    gpu_hook: str | None = None
    """Path of NVIDIA's container hook; a daemon may have another search path."""


@dataclass(frozen=True, slots=True)
class ImageFact:
    """The image on the machine. `tagged` are the digests of its tag, looked up where the pinned image is absent."""

    id: str | None
    digests: tuple[str, ...] = ()
    architecture: str = ""
    entrypoint: tuple[str, ...] = ()
    tagged: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class MountSource:
    """A mount's source on the host."""

    path: str
    exists: bool


@dataclass(frozen=True, slots=True)
class Patch:
    """A file whose sha256 the recipe states. `problem` is the reason if it has none."""

    path: str
    wanted: str
    found: str | None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ListeningSocket:
    """A socket that listens on a port that the launch needs."""

    port: int
    address: str
    process: str | None = None


@dataclass(frozen=True, slots=True)
class SecretFact:
    """A secret of the recipe. `problem` is the reason if its value cannot be read; never the value."""

    name: str
    problem: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class TuningCache:
    """The kernel-tuning cache that was recorded for the release; `found` is its directory, `sha256` of its sets."""

    root: str
    identity: str
    found: str | None
    sha256: tuple[str, ...] = ()
    wanted_sha256: str | None = None
    """Of the set that belongs to the release, if the recipe names one."""


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """Facts of the machine for one release; a fact that does not apply to the release is None or empty."""

    image: ImageFact | Missing
    models: tuple[ModelFiles, ...] | Missing = ()
    disks: tuple[DiskSpace, ...] | Missing = ()
    sources: tuple[MountSource, ...] | Missing = ()
    patches: tuple[Patch, ...] | Missing = ()
    ports: tuple[ListeningSocket, ...] | Missing = ()
    secrets: tuple[SecretFact, ...] | Missing = ()
    tuning_cache: TuningCache | Missing | None = None


@dataclass(frozen=True, slots=True)
class FileEntry:
    """The file or directory of a path. `real` is the path without links, `size` is in bytes."""

    real: str
    size: int
    directory: bool


@dataclass(frozen=True, slots=True)
class Space:
    """The filesystem below a path, or below the nearest directory above it that exists; bytes."""

    real: str
    free: int
    total: int


class Machine(Protocol):
    """The machine that the containers run on."""

    def output(self, argv: tuple[str, ...]) -> str | Missing:
        """The standard output of a program that ends by itself within seconds."""

    def read(self, path: str) -> str | Missing: ...

    def begin(self, path: str, count: int) -> bytes | Missing:
        """The first `count` bytes of a file."""

    def names(self, directory: str) -> tuple[str, ...] | Missing:
        """Sorted."""

    def entry(self, path: str) -> FileEntry | Missing | None:
        """Follows links; None if nothing exists."""

    def space(self, path: str) -> Space | Missing: ...

    def sha256(self, path: str) -> str | Missing: ...

    def memlock(self) -> Limit | Missing: ...

    def program(self, name: str) -> str | None:
        """The path of a program."""

    def listener(self, port: int) -> ListeningSocket | Missing | None:
        """The socket that listens on the port, on any address."""


class HostDocker(Protocol):
    """The Docker Engine that runs the containers, or its replacement."""

    def info(self) -> Mapping[str, Any] | Missing:
        """`GET /info`."""

    def image(self, reference: str) -> ImageFact | Missing:
        """With `tagged` where the reference has a digest and only its tag is there."""

    def containers(self) -> Mapping[str, ContainerFact] | Missing:
        """By full id."""
