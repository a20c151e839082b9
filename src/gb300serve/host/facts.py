"""Facts of the host, as values. Sizes in bytes, power in watts; None where a tool printed no value."""

from dataclasses import dataclass

from gb300serve.host.docker_info import DockerInfo
from gb300serve.host.linux import Filesystem, HostMemory, Limit
from gb300serve.host.missing import Missing
from gb300serve.host.model_files import ModelFiles
from gb300serve.host.nvidia import ComputeProcess, GpuState


@dataclass(frozen=True, slots=True)
class ContainerFact:
    """A container that Docker knows: the reference it was made from, and since when (UTC) it runs."""

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
    """Where a directory lies: `use` says for what, `path` is as the plan has it."""

    use: str
    path: str
    free: int
    total: int
    filesystem: Filesystem | None = None
    """None where the system does not list its mounts."""


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory that is to be written. `problem` says why it cannot be."""

    path: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What is true of the machine whatever is launched."""

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
    """Where NVIDIA's container hook lies; a daemon may have another search path."""


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
    """A file whose sha256 the recipe states. `problem` says why it has none."""

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
    """A secret of the recipe. `problem` says why its value cannot be read; never the value."""

    name: str
    problem: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class TuningCache:
    """The kernel-tuning cache that the release was seen with: `found` is its directory."""

    root: str
    identity: str
    found: str | None


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """What is true of the machine for one release; None and empty where the release has nothing of the kind."""

    image: ImageFact | Missing
    models: tuple[ModelFiles, ...] | Missing = ()
    disks: tuple[DiskSpace, ...] | Missing = ()
    sources: tuple[MountSource, ...] | Missing = ()
    patches: tuple[Patch, ...] | Missing = ()
    ports: tuple[ListeningSocket, ...] | Missing = ()
    secrets: tuple[SecretFact, ...] | Missing = ()
    tuning_cache: TuningCache | Missing | None = None
