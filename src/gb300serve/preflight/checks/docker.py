"""The Docker Engine: there, able to give GPUs, allowed to lift limits."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.core.text import gib
from gb300serve.host.linux import UNLIMITED
from gb300serve.host.missing import Missing
from gb300serve.preflight.subject import PreflightSubject, check


@check("PRE010", "error")
def docker_not_there(subject: PreflightSubject) -> Iterator[Finding]:
    """No Docker Engine answers.

    Why: nothing can be launched, and nothing can be said of images and containers.
    Fix: start it, get permission for its socket, or name another one in the site file (`docker`).
    """
    docker = subject.host.docker
    if isinstance(docker, Missing):
        hint = "start it, join the group of its socket, or name another one (site file: docker; DOCKER_HOST)"
        yield Finding(("docker",), docker.why, hint)


@check("PRE011", "warning")
def gpu_runtime_not_seen(subject: PreflightSubject) -> Iterator[Finding]:
    """Neither the NVIDIA runtime nor a CDI device is known to Docker.

    Why: without NVIDIA's container toolkit `--gpus` ends with `could not select device driver`. A hook on the daemon's
    own search path works without either, so this is no proof.
    Fix: install nvidia-container-toolkit, `sudo nvidia-ctk runtime configure`, restart Docker.
    """
    docker = subject.host.docker
    if isinstance(docker, Missing) or docker.nvidia or subject.host.gpu_hook or not subject.wants_gpu:
        return
    yield Finding(
        ("docker",),
        "Docker names neither the NVIDIA runtime nor CDI devices: it may refuse to give GPUs to containers",
        "install nvidia-container-toolkit, then: sudo nvidia-ctk runtime configure && sudo systemctl restart docker",
    )


@check("PRE012", "error")
def memlock_not_allowed(subject: PreflightSubject) -> Iterator[Finding]:
    """The release asks for unlimited locked memory, and a rootless Docker cannot lift its user's limit.

    Why: pinning the offloaded weights fails minutes into the load, or the container does not start at all.
    Fix: raise the user's limit (`memlock` in /etc/security/limits.conf), or use a Docker that runs as root.
    """
    docker, limit = subject.host.docker, subject.host.memlock
    if isinstance(docker, Missing) or isinstance(limit, Missing) or subject.release is None or not docker.rootless:
        return
    asked = subject.release.plan.container.ulimits.get("memlock")
    wanted = max(asked) if isinstance(asked, tuple) and UNLIMITED not in asked else UNLIMITED
    if asked is not None and limit.hard != UNLIMITED and (wanted == UNLIMITED or wanted > limit.hard):
        message = f"this rootless Docker may lock {gib(limit.hard)}, and the release asks for more"
        yield Finding(("memlock",), message, "raise `memlock` in /etc/security/limits.conf and log in again")
