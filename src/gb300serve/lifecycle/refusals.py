"""Refusals to launch: raised before anything is created, renamed or stopped (exit 6)."""

from gb300serve.core.errors import Action, MachineError
from gb300serve.lifecycle.backend import LABEL_LANE, Container, GpuHeld, Image, Listener
from gb300serve.lifecycle.launch import Launch, describe_container, describe_state, ref_of, release_of, safe_in_name


class ImageMissingError(MachineError):
    """The image is absent; the tool never pulls on its own."""

    def __init__(self, image: str, *, local: bool = False) -> None:
        hint = "build it or load it (docker load): it has no registry digest" if local else f"docker pull {image}"
        super().__init__(f"image {image} not found on this machine; up never pulls an image", hint=hint)


class ImageDiffersError(MachineError):
    """The reference exists, but names another image than the recipe pins."""

    def __init__(self, reference: str, wanted: str, found: tuple[str, ...], *, pull: str | None = None) -> None:
        has = ", ".join(found) or "no digest (built or loaded here)"
        hint = f"docker pull {pull}" if pull else f"build or load the image with the id {wanted}"
        super().__init__(
            f"{reference} on this machine is another image: the recipe pins {wanted}, the image has {has}", hint=hint
        )


class MountSourceMissingError(MachineError):
    """Docker would create an empty directory, owned by root, for a missing source of `-v`."""

    def __init__(self, sources: tuple[str, ...]) -> None:
        verb = "does" if len(sources) == 1 else "do"
        super().__init__(
            f"{', '.join(sources)} {verb} not exist on the machine that runs the containers; "
            "Docker would mount an empty directory instead",
            hint="put the files there, or correct the directories in the site file (models, cache, patches)",
        )


class NameHeldError(MachineError):
    """A container of another release of ours has the name."""

    def __init__(self, launch: Launch, holder: Container) -> None:
        back = "; it is kept for rollback" if holder.state == "exited" else ""
        keep, other = "keep it under another name and launch", _under_another_name(launch)
        if holder.state == "running":  # no GPU and no port is left for a second container
            keep, other = f"stop it, {keep}", Action("down", "only stop it", ref=ref_of(holder))
        message = f"the name {launch.name} is held by {release_of(holder)}, {describe_state(holder)}{back}"
        super().__init__(message, suggest=(Action("up", keep, ("--replace",)), other))


class SecretsChangedError(MachineError):
    """A container keeps the secret values of its creation: starting it again would serve with the old ones."""

    def __init__(self, holder: Container, names: tuple[str, ...]) -> None:
        super().__init__(
            f"{holder.name} ({release_of(holder)}, {describe_state(holder)}) was created with another value of "
            f"{', '.join(names)}; a container keeps the values of its creation",
            suggest=(
                Action("up", "keep it under another name and launch with the current value", ("--replace",)),
                Action("down", "remove it first", ("--remove",)),
            ),
        )


class NameHeldByLaneError(MachineError):
    """Another lane of ours runs under the name; `--replace` is for releases of one lane."""

    def __init__(self, launch: Launch, holder: Container) -> None:
        super().__init__(
            f"the name {launch.name} is held by another lane: {release_of(holder)}, {describe_state(holder)}",
            suggest=(_stop(holder),),
        )


class NameHeldByStrangerError(MachineError):
    """A container without our labels has the name; it is never touched."""

    def __init__(self, launch: Launch, holder: Container) -> None:
        super().__init__(
            f"the name {launch.name} is held by a container that gb300serve did not create "
            f"(image {holder.image}, {describe_state(holder)}); it is never replaced",
            suggest=(f"rename it: docker rename {holder.name} {holder.name}-aside", _under_another_name(launch)),
        )


class ContainerUnusableError(MachineError):
    """The container of this plan is paused, being removed or dead: Docker refuses to start it."""

    def __init__(self, container: Container) -> None:
        hint = (
            f"docker unpause {container.name}"
            if container.state == "paused"
            else f"wait until Docker has removed it: docker ps -a --filter name={container.name}"
        )
        super().__init__(f"{describe_container(container)} is {container.state}", hint=hint)


class GpuBusyError(MachineError):
    """Another lane or a foreign container uses the GPU: only one large model fits."""

    def __init__(self, launch: Launch, holder: Container, gpu: GpuHeld | None = None) -> None:
        suggest: tuple[Action | str, ...] = (_stop(holder),)
        if not holder.ours:
            held = f"; {gpu.sentence(holder.id)}" if gpu else ""
            message = (
                f"a container that gb300serve did not create uses the GPU: {holder.name} "
                f"(image {holder.image}), {describe_state(holder)}{held}; it is never stopped for you"
            )
        elif holder.labels.get(LABEL_LANE) == launch.plan.lane:
            message = (
                f"another release of this lane uses the GPU: {describe_container(holder)}, {describe_state(holder)}"
            )
            suggest = (Action("up", arguments=("--replace",)),)
        else:
            message = f"another lane uses the GPU: {describe_container(holder)}, {describe_state(holder)}"
        super().__init__(message, suggest=suggest)


class PortHeldError(MachineError):
    """Two engines on one port both start without an error, and the wrong one answers."""

    def __init__(self, port: int, holder: Container) -> None:
        where = "on the host's network" if holder.host_network else "as a published port"
        super().__init__(
            f"port {port} is taken by {describe_container(holder)}, {where}, {describe_state(holder)}",
            suggest=(_stop(holder),),
        )


class PortListenedError(MachineError):
    """A program listens on the port already; the engine would notice only after loading the model."""

    def __init__(self, listener: Listener) -> None:
        who = listener.process or "a process of another user"
        super().__init__(
            f"port {listener.port} is taken: {who} listens on {listener.address}",
            hint=f"stop that program, or use another port; to identify it: ss -ltnp 'sport = :{listener.port}'",
        )


def image_found(image: Image) -> tuple[str, ...]:
    """The digests of an image without their repositories."""
    return tuple(digest.rpartition("@")[2] for digest in image.digests)


def _stop(holder: Container) -> Action | str:
    return Action("down", ref=ref_of(holder)) if holder.ours else f"docker stop {holder.name}"


def _under_another_name(launch: Launch) -> Action:
    name = f"{launch.name}-{safe_in_name(launch.plan.release)}"
    return Action("up", "launch under another name", ("--set", f"container.name={name}"))
