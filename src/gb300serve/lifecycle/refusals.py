"""Why nothing was started: raised before anything is created, renamed or stopped (exit 6)."""

from gb300serve.core.errors import MachineError
from gb300serve.lifecycle.backend import LABEL_LANE, Container, GpuHeld, Image, Listener
from gb300serve.lifecycle.launch import Launch, condition, in_name, ref_of, release_of, title


class ImageMissingError(MachineError):
    """Nothing is ever pulled by itself."""

    def __init__(self, image: str, *, local: bool = False) -> None:
        hint = "build or load it (docker load): it has no registry digest" if local else f"docker pull {image}"
        super().__init__(f"the image {image} is not on this machine, and nothing is pulled by itself", hint=hint)


class ImageDiffersError(MachineError):
    """The reference is there, but means something else than the recipe pins."""

    def __init__(self, reference: str, wanted: str, found: tuple[str, ...], *, pull: str | None = None) -> None:
        has = ", ".join(found) or "no digest: it was built or loaded here"
        hint = f"docker pull {pull}" if pull else f"build or load the image with the id {wanted}"
        super().__init__(
            f"{reference} on this machine is another image: the recipe pins {wanted}, it has {has}", hint=hint
        )


class MountSourceMissingError(MachineError):
    """`-v` on a missing source would create an empty directory, owned by root, and mount that."""

    def __init__(self, sources: tuple[str, ...]) -> None:
        verb = "does" if len(sources) == 1 else "do"
        super().__init__(
            f"{', '.join(sources)} {verb} not exist on the machine that runs the containers; mounted like that, "
            "Docker would create an empty directory",
            hint="put the files there, or name the right directories in the site file (models, cache, patches)",
        )


class NameHeldError(MachineError):
    """Another release of ours has the name."""

    def __init__(self, launch: Launch, holder: Container) -> None:
        back = "; it is the kept way back" if holder.state == "exited" else ""
        super().__init__(
            f"the name {launch.name} is held by {release_of(holder)}, {condition(holder)}{back}",
            hint=_stop_and_replace(launch, holder) if holder.state == "running" else _two_ways(launch),
        )


class SecretsChangedError(MachineError):
    """Values of secrets are given when a container is created: starting it again would serve with the old ones."""

    def __init__(self, launch: Launch, holder: Container, names: tuple[str, ...]) -> None:
        super().__init__(
            f"{holder.name} ({release_of(holder)}, {condition(holder)}) was created with another value of"
            f" {', '.join(names)}, and keeps it for as long as it exists",
            hint=(
                f"to keep it under another name and launch with the value of now: {launch.command('up', '--replace')}; "
                f"to remove it first: {launch.command('down', '--remove')}"
            ),
        )


class NameHeldByLaneError(MachineError):
    """Another lane of ours runs under the name: replacing is for releases of one lane."""

    def __init__(self, launch: Launch, holder: Container) -> None:
        super().__init__(
            f"the name {launch.name} is held by another lane: {release_of(holder)}, {condition(holder)}",
            hint=launch.beside("down", ref_of(holder)),
        )


class NameHeldByStrangerError(MachineError):
    """A container without our labels has the name: it is never touched."""

    def __init__(self, launch: Launch, holder: Container) -> None:
        super().__init__(
            f"the name {launch.name} is held by a container that gb300serve did not create "
            f"(image {holder.image}, {condition(holder)}); it is never replaced",
            hint=(
                f"to rename it: docker rename {holder.name} {holder.name}-aside; "
                f"to launch under another name: {_under_another_name(launch)}"
            ),
        )


class ContainerUnusableError(MachineError):
    """The container of this plan is paused, being removed or dead: starting it is refused by its engine."""

    def __init__(self, container: Container) -> None:
        hint = (
            f"docker unpause {container.name}"
            if container.state == "paused"
            else f"wait until it is gone: docker ps -a --filter name={container.name}"
        )
        super().__init__(f"{title(container)} is {container.state}", hint=hint)


class GpuBusyError(MachineError):
    """Another launch or a stranger holds the GPU: only one large model fits."""

    def __init__(self, launch: Launch, holder: Container, gpu: GpuHeld | None = None) -> None:
        if not holder.ours:
            held = f"; {gpu.sentence(holder.id)}" if gpu else ""
            message = (
                f"a container that gb300serve did not create is on the GPU: {holder.name} "
                f"(image {holder.image}), {condition(holder)}{held}; it is never stopped for you"
            )
            hint = f"docker stop {holder.name}"
        elif holder.labels.get(LABEL_LANE) == launch.plan.lane:
            message = f"another release of this lane is on the GPU: {title(holder)}, {condition(holder)}"
            hint = launch.command("up", "--replace")
        else:
            message = f"another lane is on the GPU: {title(holder)}, {condition(holder)}"
            hint = launch.beside("down", ref_of(holder))
        super().__init__(message, hint=hint)


class PortHeldError(MachineError):
    """Two engines on one port both start without an error, and the wrong one answers: refuse before."""

    def __init__(self, launch: Launch, port: int, holder: Container) -> None:
        where = "on the host's network" if holder.host_network else "as a published port"
        super().__init__(
            f"port {port} is taken by {title(holder)}, {where}, {condition(holder)}",
            hint=launch.beside("down", ref_of(holder)) if holder.ours else f"docker stop {holder.name}",
        )


class PortListenedError(MachineError):
    """A program listens there already; the engine would find out only after the whole load."""

    def __init__(self, listener: Listener) -> None:
        who = listener.process or "a process that may not be seen"
        super().__init__(
            f"port {listener.port} is taken: {who} listens on {listener.address}",
            hint=f"end that program, or launch on another port (who it is: ss -ltnp 'sport = :{listener.port}')",
        )


def image_found(image: Image) -> tuple[str, ...]:
    """The digests of an image without their repositories."""
    return tuple(digest.rpartition("@")[2] for digest in image.digests)


def _two_ways(launch: Launch) -> str:
    return (
        f"to keep it under another name and launch: {launch.command('up', '--replace')}; "
        f"to leave it alone and launch under another name: {_under_another_name(launch)}"
    )


def _stop_and_replace(launch: Launch, holder: Container) -> str:
    """Beside a running one there is no room for another: no GPU, and no port."""
    return (
        f"to stop it, keep it under another name and launch: {launch.command('up', '--replace')}; "
        f"to stop it only: {launch.beside('down', ref_of(holder))}"
    )


def _under_another_name(launch: Launch) -> str:
    name = f"{launch.name}-{in_name(launch.plan.release)}"
    return launch.command("up", "--set", f"container.name={name}")
