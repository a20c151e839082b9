"""What there is against what is wanted: the steps between them, or the reason why there are none."""

from dataclasses import replace as changed

from gb300serve.lifecycle.conflicts import going, live, on_gpu, on_port, refuse_conflicts
from gb300serve.lifecycle.launch import Launch, host_ports, other_secrets
from gb300serve.lifecycle.names import is_failed, kept_name
from gb300serve.lifecycle.observe import Observed
from gb300serve.lifecycle.ports import LABEL_LANE, LABEL_PLAN, Container
from gb300serve.lifecycle.refusals import (
    ContainerUnusableError,
    ImageDiffersError,
    ImageMissingError,
    MountSourceMissingError,
    NameHeldByLaneError,
    NameHeldByStrangerError,
    NameHeldError,
    SecretsChangedError,
    image_found,
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

# A serving engine ends within 2 s; one that still boots may never answer the signal and is killed.
STOP_TIMEOUT = 30.0


def reconcile(launch: Launch, observed: Observed, at: float, *, replace: bool = False) -> tuple[Step, ...]:
    """`at` is now, seconds since 1970: it goes into the name of what is replaced. Raises a MachineError (exit 6)."""
    kept = _same_plan(launch, observed)
    if kept and other_secrets(launch, kept):
        if not replace and (live(kept) or kept.name == launch.name):
            raise SecretsChangedError(launch, kept, other_secrets(launch, kept))
        kept = None
    if kept and live(kept):
        return _taken_up(launch, kept)
    if kept and going(kept):
        raise ContainerUnusableError(kept)
    holder = observed.named(launch.name)
    if holder is not None and (kept is None or holder.id != kept.id):
        _refuse_holder(launch, holder, replace=replace)
    leaving = _leaving(launch, observed, holder) if replace else ()
    refuse_conflicts(launch, observed, frozenset(each.id for each in leaving))
    _refuse_sources(observed)
    if kept is None:
        _refuse_image(launch, observed)
    away = tuple(step for each in leaving for step in _retired(launch, each, at))
    return (*away, *(_created(launch) if kept is None else _restarted(launch, kept)))


def _same_plan(launch: Launch, observed: Observed) -> Container | None:
    """The container of exactly this plan that is best to use: a live one, the one with the name, the last that ran.

    A launch that was cut short while replacing leaves it under its kept name.
    """
    same = [each for each in observed.containers if each.labels.get(LABEL_PLAN) == launch.digest]
    usable = [each for each in same if not is_failed(each) and (each.name == launch.name or not going(each))]
    return max(
        usable,
        key=lambda each: (
            live(each),
            not other_secrets(launch, each),
            each.name == launch.name,
            each.finished_at or 0.0,
        ),
        default=None,
    )


def _taken_up(launch: Launch, container: Container) -> tuple[Step, ...]:
    """It runs: it serves already, or its boot is watched from here on."""
    if container.state == "paused":
        raise ContainerUnusableError(container)
    if container.state == "restarting":
        # Its engine dies again and again under a restart policy: one boot without the policy shows the first error.
        ending = changed(container, restart_policy="no")
        quiet = _policy(container, "no")
        return (*quiet, _stop(container), *_restarted(launch, ending))
    wait = AwaitReady(container.id, container.name, running=True)
    return (wait, *_policy(container, launch.plan.container.restart))


def _refuse_holder(launch: Launch, holder: Container, *, replace: bool) -> None:
    if not holder.ours:
        raise NameHeldByStrangerError(launch, holder)
    if going(holder):
        raise ContainerUnusableError(holder)
    if live(holder) and not _same_lane(launch, holder):
        raise NameHeldByLaneError(launch, holder)
    if not replace:
        raise NameHeldError(launch, holder)


def _leaving(launch: Launch, observed: Observed, holder: Container | None) -> tuple[Container, ...]:
    """What --replace moves away: who has the name, and live releases of this lane that hold the GPU or the port."""
    lane = tuple(each for each in observed.containers if each.ours and live(each) and _same_lane(launch, each))
    blocking = {each.id for each in on_gpu(launch.plan.container.gpus, lane)}
    blocking |= {each.id for port in host_ports(launch.plan) for each in on_port(port, lane)}
    if holder is not None and (holder.labels.get(LABEL_PLAN) != launch.digest or other_secrets(launch, holder)):
        blocking.add(holder.id)
    return tuple(each for each in observed.containers if each.id in blocking)


def _same_lane(launch: Launch, container: Container) -> bool:
    return container.labels.get(LABEL_LANE) == launch.plan.lane


def _refuse_sources(observed: Observed) -> None:
    if observed.missing_sources:
        raise MountSourceMissingError(observed.missing_sources)


def _refuse_image(launch: Launch, observed: Observed) -> None:
    plan, image = launch.plan, observed.image
    reference, pinned, digest = plan.image.partition("@")
    if image is None and observed.tagged is not None:
        raise ImageDiffersError(reference, digest, image_found(observed.tagged), pull=plan.image)
    if image is None:
        raise ImageMissingError(plan.image, local=plan.image_id is not None)
    if pinned and image.digests and digest not in image_found(image):
        raise ImageDiffersError(reference, digest, image_found(image), pull=plan.image)
    if plan.image_id is not None and image.id != plan.image_id:
        raise ImageDiffersError(reference, plan.image_id, (image.id,))


def _retired(launch: Launch, container: Container, at: float) -> tuple[Step, ...]:
    """Stopped and kept. Its policy goes first: `always` would start it again with the daemon, beside the new one."""
    running = (_stop(container),) if live(container) else ()
    name = kept_name(launch.name, container, at)
    moved = (RenameContainer(container.id, container.name, name),) if container.name == launch.name else ()
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
    """The kept container under its own name again, without a policy until it is READY."""
    back = (RenameContainer(kept.id, kept.name, launch.name),) if kept.name != launch.name else ()
    return (
        *_policy(kept, "no"),
        *back,
        StartContainer(kept.id, launch.name, kept=True),
        AwaitReady(kept.id, launch.name),
        *_new_policy(kept.id, launch.name, launch.plan.container.restart),
    )


def _stop(container: Container) -> StopContainer:
    timeout = STOP_TIMEOUT if container.stop_timeout is None else float(container.stop_timeout)
    return StopContainer(container.id, container.name, timeout)


def _policy(container: Container, policy: str) -> tuple[Step, ...]:
    if container.restart_policy == policy:
        return ()
    return (ApplyRestart(container.id, container.name, policy, container.restart_policy),)


def _new_policy(container: str, name: str, policy: str) -> tuple[Step, ...]:
    return () if policy == "no" else (ApplyRestart(container, name, policy),)
