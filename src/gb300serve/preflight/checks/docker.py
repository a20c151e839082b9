"""Checks of the Docker Engine and the image."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.core.text import gib
from gb300serve.core.values import Missing
from gb300serve.host.facts import ImageFact
from gb300serve.host.linux import UNLIMITED
from gb300serve.plan.model import Plan
from gb300serve.preflight.subject import PreflightSubject, check


@check("PRE010", "error")
def docker_not_there(subject: PreflightSubject) -> Iterator[Finding]:
    """No Docker Engine responds.

    Why: Nothing can be launched, and images and containers cannot be checked.
    Fix: Start it, get permission for its socket, or set another one in the site file (`docker`).
    """
    docker = subject.host.docker
    if isinstance(docker, Missing):
        hint = "start it, join the group of its socket, or name another one (site file: docker; DOCKER_HOST)"
        yield Finding(("docker",), docker.why, hint)


@check("PRE011", "warning")
def gpu_runtime_not_seen(subject: PreflightSubject) -> Iterator[Finding]:
    """Docker lists neither the NVIDIA runtime nor a CDI device.

    Why: Without NVIDIA's container toolkit `--gpus` fails with `could not select device driver`. A hook on the daemon's
    own search path also works, so this is only a warning.
    Fix: Install nvidia-container-toolkit, run `sudo nvidia-ctk runtime configure`, and restart Docker.
    """
    docker = subject.host.docker
    if isinstance(docker, Missing) or docker.nvidia or subject.host.gpu_hook or not subject.wants_gpu:
        return
    yield Finding(
        ("docker",),
        "Docker lists neither the NVIDIA runtime nor CDI devices: it may refuse to give GPUs to containers",
        "install nvidia-container-toolkit, then: sudo nvidia-ctk runtime configure && sudo systemctl restart docker",
    )


@check("PRE012", "error")
def memlock_not_allowed(subject: PreflightSubject) -> Iterator[Finding]:
    """The release needs unlimited locked memory, which this rootless Docker cannot grant.

    Why: Pinning the offloaded weights fails minutes into the load, or the container does not start.
    Fix: Raise the user's limit (`memlock` in /etc/security/limits.conf), or use a Docker that runs as root.
    """
    docker, limit = subject.host.docker, subject.host.memlock
    if isinstance(docker, Missing) or isinstance(limit, Missing) or subject.release is None or not docker.rootless:
        return
    requested = subject.release.plan.container.ulimits.get("memlock")
    wanted = max(requested) if isinstance(requested, tuple) and UNLIMITED not in requested else UNLIMITED
    if requested is not None and limit.hard != UNLIMITED and (wanted == UNLIMITED or wanted > limit.hard):
        message = f"this rootless Docker can lock {gib(limit.hard)}, but the release needs more"
        yield Finding(("memlock",), message, "raise `memlock` in /etc/security/limits.conf and log in again")


def _image(subject: PreflightSubject) -> Iterator[tuple[Plan, ImageFact]]:
    """The plan and its image, if the image is checked."""
    if subject.release is not None and subject.image is not None:
        yield subject.release.plan, subject.image


@check("PRE060", "error")
def image_missing(subject: PreflightSubject) -> Iterator[Finding]:
    """The image is not on this machine.

    Why: `up` never pulls an image: a tag may have moved, and 30 GB take a while.
    Fix: Pull the image by its digest, or build it.
    """
    for plan, image in _image(subject):
        if image.id is None and image.tagged is None:
            hint = "build it or load it (docker load): it has no registry digest" if plan.image_id else _pull(plan)
            yield Finding(("image",), f"image {plan.image} not found on this machine", hint)


@check("PRE061", "error")
def image_differs(subject: PreflightSubject) -> Iterator[Finding]:
    """The image on this machine is not the pinned image.

    Why: A tag moves, and nobody could tell later which image served.
    Fix: Pull the pinned digest, or pin the local image in a new release.
    """
    for plan, image in _image(subject):
        reference, _, pinned = plan.image.partition("@")
        digests = tuple(name.rpartition("@")[2] for name in (image.tagged or image.digests))
        if image.tagged is not None or (pinned and digests and pinned not in digests):
            actual = ", ".join(digests) or "no digest: it was built or loaded here"
            message = f"{reference} refers to another image here: {actual}; the recipe pins {pinned}"
            yield Finding(("image",), message, _pull(plan))
        elif plan.image_id is not None and image.id not in (None, plan.image_id):
            hint = f"build or load the image with the id {plan.image_id}"
            yield Finding(("image",), f"{reference} has the id {image.id}; the recipe pins {plan.image_id}", hint)


def _pull(plan: Plan) -> str:
    return f"docker pull {plan.image}"


@check("PRE062", "error")
def image_for_another_architecture(subject: PreflightSubject) -> Iterator[Finding]:
    """The image is built for another processor architecture.

    Why: The container exits at once with `exec format error`.
    Fix: Pull the image for this platform; one digest can cover several platforms.
    """
    docker = subject.host.docker
    here = "" if isinstance(docker, Missing) else docker.architecture
    for plan, image in _image(subject):
        if here and image.architecture not in ("", here):
            message = f"the image is for {image.architecture}, but this machine is {here}"
            yield Finding(("image",), message, f"docker pull --platform linux/{here} {plan.image}")


@check("PRE063", "error")
def nothing_to_start(subject: PreflightSubject) -> Iterator[Finding]:
    """The image has no entrypoint, and the command starts with an option.

    Why: Docker runs the first argument as a program: `exec: "--model": executable file not found`.
    Fix: Set `engine.launcher`, the arguments before the options, or `container.entrypoint`.
    """
    for plan, image in _image(subject):
        has_program = image.id is None or image.entrypoint or plan.container.entrypoint
        if not has_program and (not plan.command or plan.command[0].startswith("-")):
            hint = "engine.launcher: [vllm, serve], or what the image has"
            yield Finding(("image",), "the image has no entrypoint, and the command does not name a program", hint)
