"""The input of a check: the facts of the host, and one release with its own facts."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from gb300serve.core.rules import RuleBook
from gb300serve.core.values import Missing
from gb300serve.fit.result import FitResult
from gb300serve.host.facts import GpuHolder, HostFacts, ImageFact, ListeningSocket, ReleaseFacts
from gb300serve.host.model_files import HostRequirements, Model
from gb300serve.host.nvidia import GpuState
from gb300serve.plan.model import Mount, Plan
from gb300serve.recipe.model import Recipe

T = TypeVar("T")
DEVICES = "device="


def known(facts: tuple[T, ...] | Missing) -> tuple[T, ...]:
    """The facts, or none if they are missing."""
    return () if isinstance(facts, Missing) else facts


def selected(gpus: tuple[GpuState, ...], request: str | None) -> tuple[GpuState, ...]:
    """As `docker run --gpus` takes them: none, `all`, a count (any of them), or `device=` with UUIDs or indexes."""
    if request is None:
        return ()
    if not request.startswith(DEVICES):
        return gpus
    return tuple(gpu for word in words(request) for gpu in gpus if is_meant(gpu, word))


def words(request: str) -> tuple[str, ...]:
    """The devices of `device=a,b`; none for `all` and a count."""
    return tuple(request.removeprefix(DEVICES).split(",")) if request.startswith(DEVICES) else ()


def is_meant(gpu: GpuState, word: str) -> bool:
    """By UUID or its beginning, or by index."""
    return gpu.uuid.startswith(word) if word.startswith("GPU-") else word == str(gpu.index)


def principal(gpus: tuple[GpuState, ...]) -> tuple[GpuState, ...]:
    """The GPU with the most memory, which CUDA numbers first by default (its order is the fastest first)."""
    return (max(gpus, key=lambda gpu: gpu.memory or 0),) if gpus else ()


def computing_gpus(gpus: tuple[GpuState, ...], request: str | None) -> tuple[GpuState, ...]:
    """The GPUs that the model runs on: with `all`, not the small display GPU."""
    chosen = selected(gpus, request)
    return chosen if (request or "").startswith(DEVICES) else principal(chosen)


@dataclass(frozen=True, slots=True)
class LaunchRefusal:
    """The reason why `up` would refuse because of existing containers."""

    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class OwnResources:
    """Resources that the launch itself uses or frees: its containers by id, and their ports.

    `kept` is a container of exactly this plan that is started again: its image is its own already.
    """

    containers: frozenset[str] = frozenset()
    ports: frozenset[int] = frozenset()
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """One release: its plan, its fit result on this host, and its facts."""

    plan: Plan
    facts: ReleaseFacts
    memory: FitResult | None = None
    own: OwnResources = field(default_factory=OwnResources)
    refusal: LaunchRefusal | None = None
    fit: str = "fit REF"
    """The command that shows its memory plan."""


@dataclass(frozen=True)
class PreflightSubject:
    """`release` is None if only the host is checked."""

    host: HostFacts
    release: Release | None = None

    @property
    def facts(self) -> ReleaseFacts:
        """The facts of the release; all are missing or empty without one."""
        return ReleaseFacts(Missing("no release")) if self.release is None else self.release.facts

    @property
    def requested_gpus(self) -> str | None:
        """The value of `--gpus`; `all` without a release."""
        return self.release.plan.container.gpus if self.release else "all"

    @property
    def wants_gpu(self) -> bool:
        """Whether the GPU is checked; without a release it is."""
        return self.requested_gpus is not None

    @cached_property
    def gpus(self) -> tuple[GpuState, ...]:
        """The GPUs of the launch; all GPUs without a release."""
        return selected(known(self.host.gpus), self.requested_gpus)

    @cached_property
    def computing(self) -> tuple[GpuState, ...]:
        """The GPUs that the model runs on."""
        return computing_gpus(known(self.host.gpus), self.requested_gpus)

    @cached_property
    def foreign(self) -> tuple[GpuHolder, ...]:
        """Compute processes on these GPUs that the launch neither uses nor stops."""
        return tuple(holder for holder in self._holders() if not self._is_own(holder))

    def leaving(self, gpu: GpuState) -> int | None:
        """Bytes on a GPU that the launch frees itself; None if their processes do not report it."""
        own = (holder.process for holder in self._holders() if self._is_own(holder))
        sizes = [process.used for process in own if process.gpu == gpu.uuid]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @cached_property
    def image(self) -> ImageFact | None:
        """The image, if the launch resolves it by tag or digest."""
        image = self.facts.image
        return None if isinstance(image, Missing) or (self.release and self.release.own.kept) else image

    @property
    def foreign_ports(self) -> tuple[ListeningSocket, ...]:
        """Foreign listeners on the ports of the launch."""
        own = self.release.own.ports if self.release else ()
        return tuple(socket for socket in known(self.facts.ports) if socket.port not in own)

    def _holders(self) -> Iterator[GpuHolder]:
        ids = {gpu.uuid for gpu in self.computing}
        for holder in known(self.host.processes):
            if holder.process.gpu is None or not ids or holder.process.gpu in ids:
                yield holder

    def _is_own(self, holder: GpuHolder) -> bool:
        return self.release is not None and holder.container in self.release.own.containers


CHECKS: RuleBook[PreflightSubject] = RuleBook()
check = CHECKS.rule


# The directory of vLLM's compiled and tuned kernels.
ENGINE_CACHE = "/root/.cache/vllm"


def host_requirements(plan: Plan, recipe: Recipe, ports: tuple[int, ...]) -> HostRequirements:
    """The host paths of the plan, the checkpoints of `recipe`, and the host ports of the container."""
    # Docker keeps named volumes: their paths are not known, and they always exist.
    mounts = tuple(mount for mount in plan.container.mounts if not mount.is_volume)
    tuning = recipe.boot.tuning_cache
    cache = next((mount.source for mount in mounts if mount.target.rstrip("/") == ENGINE_CACHE), None)
    return HostRequirements(
        plan.image,
        models=tuple(_models(plan, recipe)),
        caches=tuple(mount.source for mount in mounts if not mount.read_only),
        sources=tuple(mount.source for mount in mounts),
        patches=tuple(dict.fromkeys(pair for mount in mounts for pair in _patches(mount))),
        ports=ports,
        tuning=(cache, tuning.identity) if tuning and cache else None,
        tuning_sha256=tuning.sha256 if tuning else None,
    )


def _models(plan: Plan, recipe: Recipe) -> Iterator[Model]:
    """The compiled path of a model is the source of its mount; a first model without one has it in the plan."""
    sources = {mount.target: mount.source for mount in plan.container.mounts}
    for number, model in enumerate(recipe.all_models):
        path = sources.get(model.mount or "") or (plan.model_path if number == 0 else None)
        if model.path and path:
            yield Model(path, model.repo, model.revision)


def _patches(mount: Mount) -> Iterator[tuple[str, str]]:
    if isinstance(mount.sha256, str):
        yield mount.source, mount.sha256
    elif mount.sha256:
        yield from ((f"{mount.source}/{name}", digest) for name, digest in mount.sha256.items())
