"""From the observed containers to the steps of a launch, or to the refusal to launch."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from dataclasses import replace as changed

from gb300serve.engines.registry import engine_in
from gb300serve.lifecycle import refusals
from gb300serve.lifecycle.backend import (
    LABEL_LANE,
    LABEL_PLAN,
    Container,
    ContainerBackend,
    GpuHeld,
    Image,
    Listener,
    Listeners,
)
from gb300serve.lifecycle.launch import (
    Launch,
    changed_secrets,
    describe_state,
    host_ports,
    is_failed,
    kept_name,
    option_values,
    release_of,
)
from gb300serve.lifecycle.steps import (
    ApplyRestart,
    AwaitReady,
    CreateContainer,
    RenameContainer,
    StartContainer,
    Step,
    StopContainer,
)
from gb300serve.lifecycle.tools import Tools
from gb300serve.plan.model import Plan


@dataclass(frozen=True, slots=True)
class Observed:
    """`neighbours`: running containers of another backend, which conflict only by port."""

    containers: tuple[Container, ...] = ()
    image: Image | None = None
    tagged: Image | None = None
    """The image of the reference without its digest; looked up only when `image` is None."""
    missing_sources: tuple[str, ...] = ()
    """Looked up last, if nothing else refuses."""
    neighbours: tuple[Container, ...] = ()
    listeners: tuple[Listener, ...] = ()
    gpu: GpuHeld | None = None
    """Looked up only if a foreign container uses the GPU."""

    def named(self, name: str) -> Container | None:
        """By exact name; Docker's own lookup also accepts prefixes of ids."""
        return next((container for container in self.containers if container.name == name), None)


def observe(
    backend: ContainerBackend,
    plan: Plan,
    listeners: Listeners | None = None,
    neighbours: tuple[ContainerBackend, ...] = (),
) -> Observed:
    """Without `listeners` (Docker on another machine) sockets are not checked. Raises BackendError."""
    image = backend.image(plan.image)
    reference, at, _ = plan.image.partition("@")
    sockets = (listener for port in host_ports(plan) for listener in listeners.each_on(port)) if listeners else ()
    return Observed(
        containers=backend.containers(),
        image=image,
        tagged=backend.image(reference) if image is None and at else None,
        neighbours=tuple(
            container for other in neighbours for container in other.containers() if container.state == "running"
        ),
        listeners=tuple(sockets),
    )


_LIVE = frozenset({"running", "paused", "restarting"})
_GPU_LABEL = "gpu-lane"
"""The owner's label for a container that uses the GPU, whatever options it was started with."""
_DEVICES = "device="


def is_live(container: Container) -> bool:
    """Whether it holds memory, GPU and ports; a paused container does."""
    return container.state in _LIVE


def is_being_removed(container: Container) -> bool:
    """Whether it is being removed, or was removed only partly: no operation works on it any more."""
    return container.state in {"removing", "dead"}


def find_remaining(backend: ContainerBackend, container: str) -> Container | None:
    """The container; None if it is removed or being removed: then its log and its exit code are gone."""
    found = backend.find(container)
    return None if found is None or is_being_removed(found) else found


def refuse_conflicts(launch: Launch, observed: Observed, leaving: frozenset[str]) -> None:
    """Raise for the first holder of the GPU or of a port. `leaving`: ids that the launch itself uses or stops."""
    live = tuple(filter(is_live, observed.containers))
    staying = tuple(container for container in live if container.id not in leaving)
    for holder in containers_on_gpu(launch.plan.container.gpus, staying):
        raise refusals.GpuBusyError(launch, holder, observed.gpu)
    stopping = tuple(container for container in live if container.id in leaving)
    for port in host_ports(launch.plan):
        for holder in containers_on_port(port, (*staying, *observed.neighbours)):
            raise refusals.PortHeldError(port, holder)
        listener = next((socket for socket in observed.listeners if socket.port == port), None)
        if listener and not any(containers_on_port(port, stopping)):
            raise refusals.PortListenedError(listener)


def containers_on_gpu(gpus: str | None, containers: Iterable[Container]) -> Iterator[Container]:
    """Containers that may use one of `gpus`; none if the launch requests no GPU."""
    for container in containers:
        held = container.gpus or ("all" if container.labels.get(_GPU_LABEL) == "1" else None)
        if gpus and held and _overlap(gpus, held):
            yield container


def foreign_on_gpu(gpus: str | None, containers: Iterable[Container]) -> Iterator[Container]:
    """Live foreign containers that may use one of `gpus`."""
    return containers_on_gpu(gpus, (container for container in containers if is_live(container) and not container.ours))


def containers_on_port(port: int, containers: Iterable[Container]) -> Iterator[Container]:
    """Containers that publish the port, or whose engine binds it on the host's network."""
    for container in containers:
        if port in container.published or (container.host_network and engine_port(container) == port):
            yield container


def engine_port(container: Container) -> int | None:
    """The port in its command, else the engine's default; None if it is not an engine."""
    for text in reversed(option_values(container.command, "--port")):  # the last one wins
        if text.isdecimal():
            return int(text)
    engine = engine_in((container.image, *container.command[:3]))
    return engine.default_port if engine else None


def _overlap(one: str, other: str) -> bool:
    """Only two device lists can be compared: a count or `all` may mean any GPU."""
    comparable = one.startswith(_DEVICES) and other.startswith(_DEVICES)
    return not comparable or bool(_devices(one) & _devices(other))


def _devices(gpus: str) -> set[str]:
    return set(gpus.removeprefix(_DEVICES).split(","))


# A serving engine ends within 2 s; a booting one may ignore SIGTERM and is killed.
STOP_TIMEOUT = 30.0


def reconcile(launch: Launch, observed: Observed, at: float, *, replace: bool = False) -> tuple[Step, ...]:
    """`at`: seconds since 1970, for the names of replaced containers. Raises a MachineError (exit 6)."""
    kept = _same_plan(launch, observed)
    if kept and changed_secrets(launch, kept):
        if not replace and is_live(kept):
            raise refusals.SecretsChangedError(kept, changed_secrets(launch, kept))
        kept = None
    if kept and is_live(kept):
        return _taken_up(launch, kept)
    if kept and is_being_removed(kept):
        raise refusals.ContainerUnusableError(kept)
    holder = observed.named(launch.name)
    if holder is not None and (kept is None or holder.id != kept.id):
        _refuse_holder(launch, holder, replace=replace)
    leaving = _leaving(launch, observed, holder, replace=replace)
    refuse_conflicts(launch, observed, frozenset(container.id for container in leaving))
    if observed.missing_sources:
        raise refusals.MountSourceMissingError(observed.missing_sources)
    if kept is None:
        _refuse_image(launch, observed)
    away = tuple(step for container in leaving for step in _retired(launch, container, at))
    return (*away, *(_created(launch) if kept is None else _restarted(launch, kept)))


def _same_plan(launch: Launch, observed: Observed) -> Container | None:
    """The best container of exactly this plan, also under a kept name: a live one, else the named, else the last."""

    def rank(container: Container) -> tuple[bool, bool, bool, float]:
        named, current = container.name == launch.name, not changed_secrets(launch, container)
        return is_live(container), current, named, container.finished_at or 0.0

    same = (container for container in observed.containers if container.labels.get(LABEL_PLAN) == launch.digest)
    kept = (container for container in same if not is_failed(container))
    usable = (container for container in kept if container.name == launch.name or not is_being_removed(container))
    return max(usable, key=rank, default=None)


def _taken_up(launch: Launch, container: Container) -> tuple[Step, ...]:
    if container.state == "paused":
        raise refusals.ContainerUnusableError(container)
    if container.state == "restarting":
        # A crash loop under a restart policy: one boot without the policy shows the first error.
        ending = changed(container, restart_policy="no")
        return (*_policy(container, "no"), stop_step(container), *_restarted(launch, ending))
    return (AwaitReady(container.id, container.name, running=True), *_policy(container, launch.plan.container.restart))


def _refuse_holder(launch: Launch, holder: Container, *, replace: bool) -> None:
    if not holder.ours:
        raise refusals.NameHeldByStrangerError(launch, holder)
    if is_being_removed(holder):
        raise refusals.ContainerUnusableError(holder)
    if is_live(holder) and not _same_lane(launch, holder):
        raise refusals.NameHeldByLaneError(launch, holder)
    # Only what runs needs consent: a stopped release of the lane is renamed and stays the way back.
    if not replace and (is_live(holder) or not _same_lane(launch, holder)):
        raise refusals.NameHeldError(launch, holder)


def _leaving(launch: Launch, observed: Observed, holder: Container | None, *, replace: bool) -> tuple[Container, ...]:
    """The holder of the name, and what `--replace` stops: live releases of this lane on the GPU or the port."""
    ours = (container for container in observed.containers if replace and container.ours and is_live(container))
    lane = tuple(container for container in ours if _same_lane(launch, container))
    blocking = {container.id for container in containers_on_gpu(launch.plan.container.gpus, lane)}
    blocking |= {container.id for port in host_ports(launch.plan) for container in containers_on_port(port, lane)}
    if holder is not None and (holder.labels.get(LABEL_PLAN) != launch.digest or changed_secrets(launch, holder)):
        blocking.add(holder.id)
    return tuple(container for container in observed.containers if container.id in blocking)


def _same_lane(launch: Launch, container: Container) -> bool:
    return container.labels.get(LABEL_LANE) == launch.plan.lane


def _refuse_image(launch: Launch, observed: Observed) -> None:
    plan, image = launch.plan, observed.image
    reference, pinned, digest = plan.image.partition("@")
    if image is None and observed.tagged is not None:
        raise refusals.ImageDiffersError(reference, digest, refusals.image_found(observed.tagged), pull=plan.image)
    if image is None:
        raise refusals.ImageMissingError(plan.image, local=plan.image_id is not None)
    if pinned and image.digests and digest not in refusals.image_found(image):
        raise refusals.ImageDiffersError(reference, digest, refusals.image_found(image), pull=plan.image)
    if plan.image_id is not None and image.id != plan.image_id:
        raise refusals.ImageDiffersError(reference, plan.image_id, (image.id,))


def _retired(launch: Launch, container: Container, at: float) -> tuple[Step, ...]:
    """Stopped and kept. The policy goes first: `always` would start it with the daemon, beside the new one."""
    running = (stop_step(container),) if is_live(container) else ()
    name = kept_name(launch.name, container, at)
    held = f"{release_of(container)}, {describe_state(container)}," if not running else ""
    moved = (RenameContainer(container.id, container.name, name, held),) if container.name == launch.name else ()
    return (*_policy(container, "no"), *running, *moved)


def _created(launch: Launch) -> tuple[Step, ...]:
    name = launch.name
    return (
        CreateContainer(launch.plan, launch.labels),
        StartContainer(name, name),
        AwaitReady(name, name),
        *_new_policy(name, name, launch.plan.container.restart),
    )


def _restarted(launch: Launch, kept: Container) -> tuple[Step, ...]:
    """The kept container under its own name, without a restart policy until it is READY."""
    back = (RenameContainer(kept.id, kept.name, launch.name),) if kept.name != launch.name else ()
    return (
        *_policy(kept, "no"),
        *back,
        StartContainer(kept.id, launch.name, kept=True),
        AwaitReady(kept.id, launch.name),
        *_new_policy(kept.id, launch.name, launch.plan.container.restart),
    )


def stop_step(container: Container) -> StopContainer:
    """With the container's own timeout, else STOP_TIMEOUT."""
    timeout = STOP_TIMEOUT if container.stop_timeout is None else float(container.stop_timeout)
    return StopContainer(container.id, container.name, timeout)


def _policy(container: Container, policy: str) -> tuple[Step, ...]:
    if container.restart_policy == policy:
        return ()
    return (ApplyRestart(container.id, container.name, policy, container.restart_policy),)


def _new_policy(container: str, name: str, policy: str) -> tuple[Step, ...]:
    return () if policy == "no" else (ApplyRestart(container, name, policy),)


def plan_launch(
    launch: Launch,
    tools: Tools,
    *,
    replace: bool = False,
    listeners: Listeners | None = None,
    neighbours: tuple[ContainerBackend, ...] = (),
) -> tuple[Step, ...]:
    """The steps of `up`; changes nothing. Raises a MachineError (6) or BackendError (7).

    Docker checks mount sources by creating and removing a container: done last, and only before a start.
    """
    observed, now = observe(tools.backend, launch.plan, listeners, neighbours), tools.clock.now()
    if tools.gpu and any(foreign_on_gpu(launch.plan.container.gpus, observed.containers)):
        observed = changed(observed, gpu=tools.gpu.held())
    steps = reconcile(launch, observed, now, replace=replace)
    if not any(isinstance(step, CreateContainer | StartContainer) for step in steps):
        return steps
    missing = tools.backend.missing_sources(launch.plan)
    return reconcile(launch, changed(observed, missing_sources=missing), now, replace=replace)
