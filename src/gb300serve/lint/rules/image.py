"""The image: what holds it, and whether it is the engine that the options are checked against."""

import re
import shlex
from collections.abc import Iterator

from gb300serve.core.errors import CompileError
from gb300serve.core.rules import Finding
from gb300serve.core.values import changed_arguments
from gb300serve.engines.registry import engine as engine_named
from gb300serve.engines.tables import public
from gb300serve.lint.subject import LintSubject, rule
from gb300serve.render.docker_run import pinned_text

# Tags that are pushed again by design; the rest of a tag may name a platform (`latest-cu130`, `nightly-aarch64`).
_MOVING = re.compile(
    r"(?i)(?:latest|nightly|main|master|dev|develop|edge|stable|rolling|head|cu\d+|v?\d+(?:\.\d+)?)(?:[-_.][a-z].*)?"
)
# A date or a commit in it holds a tag as well as any release number does.
_DATED = re.compile(r"\d{6,}|[0-9a-f]{7,}")
# The reference format of the distribution project: host and port, then lower-case path components.
_REPOSITORY = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d+)?/)?"
    r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*"
)
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_RELEASE = re.compile(r"v?(\d+\.\d+\.\d+(?:\.?(?:rc|post)\d+)?)(?:[-_.+].*)?")


@rule("IMG001", "error")
def bad_image_name(subject: LintSubject) -> Iterator[Finding]:
    """The repository or the tag is not what an image reference may hold.

    Why: docker refuses the whole command (`invalid reference format`); a tag or a digest inside `repository` also hides
    the pin from everything that reads it.
    Fix: write the repository in small letters without tag or digest, and those under `tag` and `digest`.
    """
    image = subject.recipe.image
    if not _REPOSITORY.fullmatch(image.repository):
        name, inside = _split(image.repository)
        hint = (
            f"write `{name.lower()}`, and `{inside}` under image.tag or image.digest"
            if inside
            else "small letters, digits, . _ - and /"
        )
        yield Finding(("image", "repository"), f"`{image.repository}` is not the name of a repository", hint)
    if image.tag is not None and not _TAG.fullmatch(image.tag):
        yield Finding(
            ("image", "tag"), f"`{image.tag}` is not a tag", "letters, digits, . _ and -, at most 128 of them"
        )


def _split(repository: str) -> tuple[str, str]:
    name, at, digest = repository.partition("@")
    if at:
        return name, digest
    head, slash, last = repository.rpartition("/")
    base, colon, tag = last.partition(":")
    return head + slash + base, tag if colon else ""


@rule("IMG002", "warning")
def moving_tag(subject: LintSubject) -> Iterator[Finding]:
    """The image is named by a tag that is pushed again, and no digest holds it.

    Why: what is pulled tomorrow is another engine: options disappear, the tuning cache is missed (74 minutes), and no
    figure belongs to it; registries keep only the last nightlies.
    Fix: add `digest: sha256:…` (`docker image inspect --format '{{index .RepoDigests 0}}' IMAGE`).
    """
    image = subject.recipe.image
    if image.digest or image.id:
        return
    if image.tag is None:
        message = "the image has neither tag nor digest: docker takes `latest`, which moves"
        yield Finding(("image", "repository"), message, "add image.tag and image.digest")
    elif _moves(image.tag):
        message = f"the tag `{image.tag}` moves, and no digest holds the image"
        yield Finding(("image", "tag"), message, "add image.digest: sha256:… of the image that was tried")


def _moves(tag: str) -> bool:
    return _MOVING.fullmatch(tag) is not None and _DATED.search(tag) is None


@rule("IMG003", "warning")
def image_without_digest(subject: LintSubject) -> Iterator[Finding]:
    """The image has a tag, and no digest.

    Why: a tag can be pushed again or deleted; only the digest names one image, and `up` can only compare with it.
    Fix: add `digest: sha256:…`, or `id: sha256:…` for an image that was built on the machine.
    """
    image = subject.recipe.image
    if image.tag is not None and not image.digest and not image.id and not _moves(image.tag):
        message = f"`{image.repository}:{image.tag}` has no digest: a tag can be pushed again"
        yield Finding(("image", "tag"), message, "add image.digest: sha256:… (or image.id for a local build)")


@rule("IMG004", "warning")
def local_image_without_tag(subject: LintSubject) -> Iterator[Finding]:
    """An image pinned by its id has no tag to start it by.

    Why: the command names an image by `repository:tag`; without a tag docker looks for `latest`, and `up` refuses when
    that has another id.
    Fix: tag the build (`docker tag ID repository:tag`) and write the tag.
    """
    image = subject.recipe.image
    if image.id and not image.tag:
        yield Finding(("image", "id"), "an image pinned by id needs a tag to be started by", "add image.tag")


@rule("IMG005", "note")
def local_image(subject: LintSubject) -> Iterator[Finding]:
    """The image is pinned by the id that one machine gave it.

    Why: no registry has it: on another machine it must be built again, and then has another id.
    Fix: push it and pin the digest, or keep the recipe of its build with this one.
    """
    image = subject.recipe.image
    if image.id and not image.digest:
        yield Finding(("image", "id"), "a local build: no other machine can pull it", "push it and write image.digest")
    elif image.id:
        yield Finding(
            ("image", "id"), "digest and id both pin the image: the command names the digest", "keep one of them"
        )


@rule("IMG006", "warning")
def tag_of_another_version(subject: LintSubject) -> Iterator[Finding]:
    """The tag of the engine's own image names another version than `engine.version`.

    Why: the options are checked against, and printed in the form of, a version that will not run.
    Fix: write the version that the image holds.
    """
    image, engine = subject.recipe.image, subject.recipe.engine
    if image.repository != engine_named(engine.name).image or not image.tag or not engine.version:
        return
    tagged = _RELEASE.fullmatch(image.tag)
    stated = _RELEASE.fullmatch(public(engine.version))
    if tagged and stated and tagged[1] != stated[1]:
        message = f"engine.version is {engine.version}, and the image is tagged {image.tag}"
        yield Finding(("engine", "version"), message, f"write {tagged[1]}, or the other image")


@rule("PIN001", "error")
def pinned_command_differs(subject: LintSubject) -> Iterator[Finding]:
    """The release no longer compiles to its pinned command.

    Why: figures, receipts and the tuning cache belong to the command that was measured; a changed word is another
    launch under the old name.
    Fix: make the change a new release that extends this one.
    """
    if subject.pinned is None:
        return
    try:
        compiled = pinned_arguments(pinned_text(subject.plan))
    except CompileError as error:
        yield Finding((), f"the pinned release does not compile: {error.message}", error.hint)
        return
    removed, added = changed_arguments(pinned_arguments(subject.pinned), compiled)
    if removed or added:
        message = f"compiles to other words than its pinned command: {_listed(removed, added)}"
        yield Finding(("release",), message, "make it a new release; `pin --force` would rewrite what was verified")


@rule("PIN002", "note")
def verified_without_pin(subject: LintSubject) -> Iterator[Finding]:
    """A verified release has no pinned command beside it.

    Why: without one nobody sees when a change of the recipe, of its parent or of this tool changes what is launched.
    Fix: `gb300serve pin REF` writes `<release>.command`; commit it.
    """
    if subject.recipe.status == "verified" and subject.pinned is None and subject.loaded.file.directory is not None:
        yield Finding(("status",), "verified, and not pinned", f"run `gb300serve pin {subject.recipe.ref}`")


def pinned_arguments(text: str) -> list[str]:
    """The words of a pinned command; text that no shell would read has none."""
    try:
        return [word for word in shlex.split(text) if word != "\n"]  # what shlex makes of a continued line
    except ValueError:
        return []


def _listed(removed: list[str], added: list[str]) -> str:
    parts = [f"pinned {' '.join(removed)}"] if removed else []
    parts += [f"now {' '.join(added)}"] if added else []
    return ", ".join(parts)
