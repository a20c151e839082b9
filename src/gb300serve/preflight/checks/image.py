"""The image: there, the pinned one, for this machine, with something to start."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.host.facts import ImageFact
from gb300serve.host.missing import Missing
from gb300serve.plan.model import Plan
from gb300serve.preflight.subject import PreflightSubject, Release, check


def _judged(subject: PreflightSubject) -> tuple[Release, ImageFact] | None:
    release, image = subject.release, subject.image
    return None if release is None or image is None else (release, image)


@check("PRE060", "error")
def image_missing(subject: PreflightSubject) -> Iterator[Finding]:
    """The image is not on the machine.

    Why: nothing is ever pulled by itself: what a tag means may have moved, and 30 GB take a while.
    Fix: pull it by its digest, or build it.
    """
    judged = _judged(subject)
    if judged is None or judged[1].id is not None or judged[1].tagged is not None:
        return
    plan = judged[0].plan
    hint = "build or load it (docker load): it has no registry digest" if plan.image_id else f"docker pull {plan.image}"
    yield Finding(("image",), f"the image {plan.image} is not on the machine", hint)


@check("PRE061", "error")
def image_differs(subject: PreflightSubject) -> Iterator[Finding]:
    """The reference means another image here than the recipe pins.

    Why: a tag moves, and nobody can say later what served.
    Fix: pull the pinned digest; or a new release that pins this one.
    """
    judged = _judged(subject)
    if judged is None:
        return
    plan, image = judged[0].plan, judged[1]
    reference, _, digest = plan.image.partition("@")
    found = tuple(each.rpartition("@")[2] for each in (image.tagged or image.digests))
    wrong = image.tagged is not None or (digest and found and digest not in found)
    if wrong:
        has = ", ".join(found) or "no digest: it was built or loaded here"
        yield Finding(("image",), f"{reference} is another image here: {has}; pinned is {digest}", _pull(plan))
    elif plan.image_id is not None and image.id not in (None, plan.image_id):
        hint = f"build or load the image with the id {plan.image_id}"
        yield Finding(("image",), f"{reference} has the id {image.id}; pinned is {plan.image_id}", hint)


def _pull(plan: Plan) -> str:
    return f"docker pull {plan.image}"


@check("PRE062", "error")
def image_for_another_architecture(subject: PreflightSubject) -> Iterator[Finding]:
    """The image is built for another processor than the machine has.

    Why: the container ends at once with `exec format error`.
    Fix: pull it for this platform: one digest may stand for several.
    """
    judged, docker = _judged(subject), subject.host.docker
    if judged is None or isinstance(docker, Missing) or not (judged[1].architecture and docker.architecture):
        return
    if judged[1].architecture != docker.architecture:
        message = f"the image is for {judged[1].architecture}, and the machine is {docker.architecture}"
        hint = f"docker pull --platform linux/{docker.architecture} {judged[0].plan.image}"
        yield Finding(("image",), message, hint)


@check("PRE063", "error")
def nothing_to_start(subject: PreflightSubject) -> Iterator[Finding]:
    """The image has no entrypoint, and the command begins with an option.

    Why: Docker takes the first word for a program: `exec: "--model": executable file not found`.
    Fix: say `engine.launcher`, the words before the options, or `container.entrypoint`.
    """
    judged = _judged(subject)
    if judged is None or judged[1].id is None or judged[1].entrypoint or judged[0].plan.container.entrypoint:
        return
    first = next(iter(judged[0].plan.command), None)
    if first is None or first.startswith("-"):
        hint = "engine.launcher: [vllm, serve], or what the image has"
        yield Finding(("image",), "the image has no entrypoint, and the command does not name a program", hint)
