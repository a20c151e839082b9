"""Drift: differences between a container and its recipe, its pinned command, or the journal."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from gb300serve.journal.runs import RunHistory
from gb300serve.lifecycle.backend import LABEL_PLAN, Container, Image, differences, wanted_options
from gb300serve.lifecycle.launch import Launch, display_time, release_of
from gb300serve.lifecycle.reconcile import is_live
from gb300serve.plan.model import SECRET


@dataclass(frozen=True, slots=True)
class Drift:
    """One field of a container that differs from `against`: the recipe, the pinned command or the journal."""

    field: str
    against: Literal["recipe", "pinned command", "journal"]
    message: str
    wanted: str | None = None
    found: str | None = None

    def as_json(self) -> dict[str, str | None]:
        """One object of `drift` in `gb300serve.status/1`."""
        return {key: getattr(self, key) for key in ("field", "against", "wanted", "found", "message")}


def drift(container: Container, launch: Launch, image: Image | None) -> tuple[Drift, ...]:
    """Empty if nothing differs. `image`: the image of the recipe's reference on the machine now."""
    return (*_differences(container, launch, image), *_from_pin(container, launch))


def from_journal(container: Container, on: str, history: RunHistory) -> tuple[Drift, ...]:
    """Differences between the running containers and the journal: changes made without gb300serve."""
    last = history.last_change(on)
    if last is None or not container.ours or history.has_unfinished_launch(on):
        return ()
    should = {lane.id: lane for lane in last.after}
    known = any(lane.id == container.id for entry in history.entries for lane in (*entry.before, *entry.after))
    if is_live(container) and container.id not in should:
        says, when = ", ".join(lane.release for lane in last.after) or "nothing", display_time(last.at)
        message = f"it runs, but the journal records {says} since {when}: it was not started by gb300serve"
        return (Drift("running", "journal", message, says, release_of(container)),)
    if not is_live(container) and known and container.id in should:
        message = f"the journal records that {_recorded(container, on, history)}; gb300serve did not stop it"
        return (Drift("running", "journal", message, "running", container.state),)
    return ()


def _recorded(container: Container, on: str, history: RunHistory) -> str:
    since = history.running_since(container.id, on) or 0.0
    if history.has_been_ready(container.id, since):
        return f"it has served since {display_time(since)}"
    return f"it was started at {display_time(since)} and not watched until READY"


def looks_like(container: Container, launch: Launch) -> bool:
    """Whether it could have been started from the launch's printed command."""
    return _same_image(container.image, launch.plan.image) and masked(container, launch) == launch.plan.command


def masked(container: Container, launch: Launch) -> tuple[str, ...]:
    """The container's command with `${secret:NAME}` as in the plan: values are never shown or compared."""
    words = launch.plan.command
    # A key that is not a secret of the recipe is masked too.
    secret_of = {"--api-key": "***"} | {before: word for before, word in pairwise(words) if SECRET.fullmatch(word)}
    glued = {"--api-key": "--api-key=***"} | {
        word.partition("=")[0]: word for word in words if "=" in word and SECRET.search(word)
    }
    actual = container.command
    return tuple(
        secret_of.get(before) or glued.get(word.partition("=")[0] if "=" in word else "") or word
        for before, word in pairwise(("", *actual))
    )


def _differences(container: Container, launch: Launch, image: Image | None) -> Iterator[Drift]:
    plan = launch.plan
    yield from _image(container, launch, image)
    for lacks, has in _changed(masked(container, launch), plan.command):
        yield from _field("command", lacks or "nothing", has or "nothing")
    yield from _field("gpus", plan.container.gpus or "none", container.gpus or "none")
    for name, value in plan.container.env.items():
        if container.env.get(name) != value:
            yield Drift(f"env.{name}", "recipe", f"env {name}: the container and the recipe have different values")
    if container.options is not None:
        for name, wanted, found in differences(wanted_options(plan.container), container.options):
            yield from _field(name, wanted, found)
    if is_live(container) and container.ours and container.restart_policy not in {"no", plan.container.restart}:
        yield from _field("restart", plan.container.restart, container.restart_policy)
    if container.ours and container.labels.get(LABEL_PLAN) != launch.digest:
        changed = "the recipe or the site has changed since this container was created"
        yield Drift("plan", "recipe", changed, launch.digest, container.labels.get(LABEL_PLAN))


def _image(container: Container, launch: Launch, image: Image | None) -> Iterator[Drift]:
    wanted = launch.plan.image
    if not _same_image(container.image, wanted):
        yield from _field("image", wanted, container.image, "was created from")
    elif image is not None and image.id != container.image_id:
        message = f"image: {wanted} now means {image.id}, the container was created from {container.image_id}"
        yield Drift("image", "recipe", message, image.id, container.image_id)


def _field(name: str, wanted: str, found: str, verb: str = "has") -> Iterator[Drift]:
    if wanted != found:
        yield Drift(name, "recipe", f"{name}: the recipe has {wanted}, the container {verb} {found}", wanted, found)


def _from_pin(container: Container, launch: Launch) -> Iterator[Drift]:
    """The engine's arguments only: container options differ from site to site."""
    if launch.pinned is None:
        return
    for lacks, has in _changed(masked(container, launch), launch.pinned):
        message = f"command: the pinned command has {lacks or 'nothing'}, the container has {has or 'nothing'}"
        yield Drift("command", "pinned command", message, lacks, has)


def _changed(actual: tuple[str, ...], wanted: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Wanted arguments, and those in their place."""
    for tag, start, end, first, last in difflib.SequenceMatcher(None, wanted, actual, autojunk=False).get_opcodes():
        if tag != "equal":
            yield " ".join(wanted[start:end]), " ".join(actual[first:last])


def _same_image(reference: str, other: str) -> bool:
    """Whether both references name one image; digests decide, whatever the tags."""
    digests = [reference.partition("@")[2] for reference in (reference, other)]
    return digests[0] == digests[1] if all(digests) else reference.partition("@")[0] == other.partition("@")[0]
