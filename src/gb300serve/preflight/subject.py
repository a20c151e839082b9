"""What a check looks at: the facts of the host, and one release with the facts that only it asks for."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from gb300serve.core.rules import RuleBook
from gb300serve.fit.result import FitResult
from gb300serve.host.facts import GpuHolder, HostFacts, ImageFact, ListeningSocket, ReleaseFacts
from gb300serve.host.missing import Missing
from gb300serve.host.model_files import Model, Wanted
from gb300serve.host.nvidia import GpuState
from gb300serve.plan.model import Mount, Plan
from gb300serve.recipe.model import Recipe

DEVICES = "device="


def selected(gpus: tuple[GpuState, ...], asked: str | None) -> tuple[GpuState, ...]:
    """As `docker run --gpus` takes them: none, `all`, a count (any of them), or `device=` with UUIDs or indexes."""
    if asked is None:
        return ()
    if not asked.startswith(DEVICES):
        return gpus
    return tuple(gpu for word in words(asked) for gpu in gpus if is_meant(gpu, word))


def words(asked: str) -> tuple[str, ...]:
    """The devices of `device=a,b`; none for `all` and a count."""
    return tuple(asked.removeprefix(DEVICES).split(",")) if asked.startswith(DEVICES) else ()


def is_meant(gpu: GpuState, word: str) -> bool:
    """By UUID or its beginning, or by index."""
    return gpu.uuid.startswith(word) if word.startswith("GPU-") else word == str(gpu.index)


def principal(gpus: tuple[GpuState, ...]) -> tuple[GpuState, ...]:
    """The GPU with the most memory, which CUDA numbers first by default (its order is the fastest first)."""
    return (max(gpus, key=lambda gpu: gpu.memory or 0),) if gpus else ()


@dataclass(frozen=True, slots=True)
class LaunchRefusal:
    """What `up` would answer to the containers that there are."""

    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Own:
    """What the launch itself holds or frees: its containers by id, and their ports.

    `kept` is a container of exactly this plan that is started again: its image is its own already.
    """

    containers: frozenset[str] = frozenset()
    ports: frozenset[int] = frozenset()
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """One release: its plan, what its memory comes to on this host, and the facts that it asks for."""

    plan: Plan
    facts: ReleaseFacts
    memory: FitResult | None = None
    own: Own = field(default_factory=Own)
    refusal: LaunchRefusal | None = None
    fit: str = "gb300serve fit REF"
    """The command that shows its memory plan."""


@dataclass(frozen=True)
class PreflightSubject:
    """`release` is None where the host alone is looked at."""

    host: HostFacts
    release: Release | None = None

    @cached_property
    def wants_gpu(self) -> bool:
        """Whether the GPU matters here: for the host alone it does."""
        return self.release is None or self.release.plan.container.gpus is not None

    @cached_property
    def gpus(self) -> tuple[GpuState, ...]:
        """Those that the launch gets; all of them for the host alone."""
        if isinstance(self.host.gpus, Missing):
            return ()
        return selected(self.host.gpus, self.release.plan.container.gpus if self.release else "all")

    @cached_property
    def computing(self) -> tuple[GpuState, ...]:
        """Those of them that the model runs on: with `all`, a small second GPU for the display is none."""
        gpus = self.release.plan.container.gpus if self.release else "all"
        return self.gpus if gpus and gpus.startswith("device=") else principal(self.gpus)

    @cached_property
    def foreign(self) -> tuple[GpuHolder, ...]:
        """Compute processes on these GPUs that the launch neither uses nor stops."""
        return tuple(each for each in self._holders() if not self._is_own(each))

    def leaving(self, gpu: GpuState) -> int | None:
        """Bytes on a GPU that the launch frees itself; None where their processes do not say."""
        sizes = [each.process.used for each in self._holders() if self._is_own(each) and each.process.gpu == gpu.uuid]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @cached_property
    def image(self) -> ImageFact | None:
        """Where it can be judged, and the launch takes it from the tag or digest."""
        if self.release is None or self.release.own.kept or isinstance(self.release.facts.image, Missing):
            return None
        return self.release.facts.image

    @cached_property
    def strangers_ports(self) -> tuple[ListeningSocket, ...]:
        """Listeners on the ports of the launch that do not go with it."""
        if self.release is None or isinstance(self.release.facts.ports, Missing):
            return ()
        own = self.release.own.ports
        return tuple(each for each in self.release.facts.ports if each.port not in own)

    def _holders(self) -> Iterator[GpuHolder]:
        if isinstance(self.host.processes, Missing):
            return
        ids = {gpu.uuid for gpu in self.computing}
        for each in self.host.processes:
            if each.process.gpu is None or not ids or each.process.gpu in ids:
                yield each

    def _is_own(self, holder: GpuHolder) -> bool:
        return self.release is not None and holder.container in self.release.own.containers


CHECKS: RuleBook[PreflightSubject] = RuleBook()
check = CHECKS.rule


# Where vLLM keeps what it compiles and tunes.
ENGINE_CACHE = "/root/.cache/vllm"


def wanted(plan: Plan, recipe: Recipe, ports: tuple[int, ...]) -> Wanted:
    """The plan's own words on the host; `recipe` says which of them are checkpoints, and of which revision.

    `ports` are those of the host that the container takes.
    """
    mounts = plan.container.mounts
    caches = tuple(mount.source for mount in mounts if not mount.read_only)
    tuning = recipe.boot.tuning_cache
    cache = next((mount.source for mount in mounts if mount.target.rstrip("/") == ENGINE_CACHE), None)
    return Wanted(
        plan.image,
        models=tuple(_models(plan, recipe)),
        caches=caches,
        sources=tuple(mount.source for mount in mounts),
        patches=tuple(dict.fromkeys(pair for mount in mounts for pair in _patches(mount))),
        ports=ports,
        tuning=(cache, tuning.identity) if tuning and cache else None,
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
