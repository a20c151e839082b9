"""What a container is against what its recipe says now."""

import difflib
from collections.abc import Iterator
from itertools import pairwise

from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.ports import LABEL_PLAN, Container, Image
from gb300serve.plan.words import SECRET


def drift(container: Container, launch: Launch, image: Image | None) -> tuple[str, ...]:
    """Sentences, none when nothing differs; `image` is what the recipe's reference means on the machine now."""
    return tuple(_differences(container, launch, image))


def looks_like(container: Container, launch: Launch) -> bool:
    """Whether it could have been started from the launch's printed command."""
    return _same_image(container.image, launch.plan.image) and masked(container, launch) == launch.plan.command


def masked(container: Container, launch: Launch) -> tuple[str, ...]:
    """The container's command with `${secret:NAME}` where the plan has one: values are never shown or compared."""
    words = launch.plan.command
    # A key that the recipe has no secret for (any more) is not shown either.
    secret_of = {"--api-key": "***"} | {before: word for before, word in pairwise(words) if SECRET.fullmatch(word)}
    glued = {"--api-key": "--api-key=***"} | {
        word.partition("=")[0]: word for word in words if "=" in word and SECRET.search(word)
    }
    actual = container.command
    return tuple(
        secret_of.get(before) or glued.get(word.partition("=")[0] if "=" in word else "") or word
        for before, word in pairwise(("", *actual))
    )


def _differences(container: Container, launch: Launch, image: Image | None) -> Iterator[str]:
    plan = launch.plan
    if not _same_image(container.image, plan.image):
        yield f"image: the recipe says {plan.image}, the container was made from {container.image}"
    elif image is not None and image.id != container.image_id:
        yield f"image: {plan.image} now means {image.id}, the container was made from {container.image_id}"
    yield from _words(masked(container, launch), plan.command)
    if container.gpus != plan.container.gpus:
        yield f"gpus: the recipe says {plan.container.gpus or 'none'}, the container has {container.gpus or 'none'}"
    for name, value in plan.container.env.items():
        if container.env.get(name) != value:
            yield f"env {name}: the container has another value than the recipe"
    if container.ours and container.labels.get(LABEL_PLAN) != launch.digest:
        yield "the recipe or the site has changed since this container was created"


def _words(actual: tuple[str, ...], wanted: tuple[str, ...]) -> Iterator[str]:
    for tag, start, end, first, last in difflib.SequenceMatcher(None, wanted, actual, autojunk=False).get_opcodes():
        if tag != "equal":
            lacks, has = " ".join(wanted[start:end]), " ".join(actual[first:last])
            yield f"command: the recipe says {lacks or 'nothing'}, the container has {has or 'nothing'}"


def _same_image(one: str, other: str) -> bool:
    """The same reference; a digest settles it, whatever the tag beside it."""
    digests = [reference.partition("@")[2] for reference in (one, other)]
    if all(digests):
        return digests[0] == digests[1]
    return one.partition("@")[0] == other.partition("@")[0]
