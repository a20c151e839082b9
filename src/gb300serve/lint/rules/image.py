"""Rules for the image, its engine version and the pinned command."""

import re
import shlex
from collections.abc import Iterator

from gb300serve.core.errors import CompileError
from gb300serve.core.rules import Finding
from gb300serve.core.values import changed_items
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
    """The repository or the tag is not valid in an image reference.

    Why: Docker rejects the command (`invalid reference format`). A tag or digest inside `repository` also hides the pin
    from other tools.
    Fix: Write the repository in lower case without tag and digest; write those under `tag` and `digest`.
    """
    image = subject.recipe.image
    if not _REPOSITORY.fullmatch(image.repository):
        name, pin = _split(image.repository)
        hint = f"write `{name.lower()}`, and `{pin}` under image.tag or image.digest"
        hint = hint if pin else "use lower-case letters, digits, . _ - and /"
        yield Finding(("image", "repository"), f"`{image.repository}` is not a valid repository name", hint)
    if image.tag is not None and not _TAG.fullmatch(image.tag):
        hint = "use letters, digits, . _ and -, at most 128 characters"
        yield Finding(("image", "tag"), f"`{image.tag}` is not a valid tag", hint)


def _split(repository: str) -> tuple[str, str]:
    name, at, digest = repository.partition("@")
    if at:
        return name, digest
    head, slash, last = repository.rpartition("/")
    base, colon, tag = last.partition(":")
    return head + slash + base, tag if colon else ""


@rule("IMG002", "warning")
def moving_tag(subject: LintSubject) -> Iterator[Finding]:
    """The image has a moving tag and no digest.

    Why: The next pull may bring another engine: options disappear, 74 minutes of tuning are lost, and no figure
    applies. Registries keep only the latest nightly builds.
    Fix: Add `digest: sha256:…` (`docker image inspect --format '{{index .RepoDigests 0}}' IMAGE`).
    """
    image = subject.recipe.image
    if image.digest or image.id:
        return
    if image.tag is None:
        message = "the image has neither tag nor digest: Docker uses `latest`, which moves"
        yield Finding(("image", "repository"), message, "add image.tag and image.digest")
    elif _moves(image.tag):
        message = f"the tag `{image.tag}` moves, and no digest pins the image"
        yield Finding(("image", "tag"), message, "add image.digest: sha256:… of the tested image")


def _moves(tag: str) -> bool:
    return _MOVING.fullmatch(tag) is not None and _DATED.search(tag) is None


@rule("IMG003", "warning")
def image_without_digest(subject: LintSubject) -> Iterator[Finding]:
    """The image has a tag but no digest.

    Why: A tag can be pushed again or deleted. Only a digest identifies one image, and `up` compares it.
    Fix: Add `digest: sha256:…`, or `id: sha256:…` for an image that was built on the machine.
    """
    image = subject.recipe.image
    if image.tag is not None and not image.digest and not image.id and not _moves(image.tag):
        message = f"`{image.repository}:{image.tag}` has no digest: a tag can be pushed again"
        yield Finding(("image", "tag"), message, "add image.digest: sha256:… (or image.id for a local build)")


@rule("IMG004", "warning")
def local_image_without_tag(subject: LintSubject) -> Iterator[Finding]:
    """An image pinned by id has no tag.

    Why: The command names the image as `repository:tag`. Without a tag Docker uses `latest`, and `up` refuses if that
    has another id.
    Fix: Tag the build (`docker tag ID repository:tag`) and write the tag.
    """
    image = subject.recipe.image
    if image.id and not image.tag:
        yield Finding(
            ("image", "id"), "an image pinned by id also needs a tag: Docker starts it by its tag", "add image.tag"
        )


@rule("IMG005", "note", pedantic=True)
def local_image(subject: LintSubject) -> Iterator[Finding]:
    """The image is pinned by an id that only one machine has.

    Why: No registry has the image. A build on another machine has another id.
    Fix: Push the image and pin its digest, or keep the build instructions with the recipe.
    """
    image = subject.recipe.image
    if image.id and image.digest:
        message = "digest and id both pin the image: the command names the digest"
        yield Finding(("image", "id"), message, "keep one of them")
    elif image.id:
        yield Finding(("image", "id"), "a local build: no other machine can pull it", "push it and write image.digest")


@rule("IMG006", "warning")
def tag_of_another_version(subject: LintSubject) -> Iterator[Finding]:
    """The image tag names another version than `engine.version`.

    Why: The options are checked and printed for a version that will not run.
    Fix: Write the version that the image contains.
    """
    image, engine = subject.recipe.image, subject.recipe.engine
    if image.repository != engine_named(engine.name).image or not image.tag or not engine.version:
        return
    tagged = _RELEASE.fullmatch(image.tag)
    stated = _RELEASE.fullmatch(public(engine.version))
    if tagged and stated and tagged[1] != stated[1]:
        message = f"engine.version is {engine.version}, but the image tag is {image.tag}"
        yield Finding(("engine", "version"), message, f"write {tagged[1]}, or use the matching image")


@rule("IMG007", "warning")
def version_in_other_spelling(subject: LintSubject) -> Iterator[Finding]:
    """The engine version is not written as the engine prints it.

    Why: Measured boots, logs and image tags are compared with the version by its text.
    Fix: Write three numbers without `v`: 0.33.0.
    """
    version = subject.version or ""
    tables = subject.tables.tables if subject.tables.exact else ()
    for table in tables:
        if public(version) != table.version and version != table.version:
            message = f"engine.version is {version}, but the engine prints {table.version}"
            yield Finding(("engine", "version"), message, f"write {table.version}", fix=table.version)


@rule("PIN001", "error")
def pinned_command_differs(subject: LintSubject) -> Iterator[Finding]:
    """The release no longer compiles to its pinned command.

    Why: Figures, receipts and the tuning cache belong to the command that was measured. A changed argument is another
    launch under the same name.
    Fix: Put the change into a new release that extends this one.
    """
    if subject.pinned is None:
        return
    try:
        compiled = pinned_arguments(pinned_text(subject.plan))
    except CompileError as error:
        yield Finding((), f"the pinned release does not compile: {error.message}", error.hint)
        return
    removed, added = changed_items(pinned_arguments(subject.pinned), compiled)
    if removed or added:
        message = f"compiles to other arguments than its pinned command: {_listed(removed, added)}"
        yield Finding(("release",), message, "make it a new release; `pin --force` would rewrite what was verified")


@rule("PIN002", "note")
def verified_without_pin(subject: LintSubject) -> Iterator[Finding]:
    """A verified release has no pinned command.

    Why: Without it nobody notices when a change to the recipe, its parent or this tool changes the launch.
    Fix: Run `pin REF`, which writes `<release>.command`, and commit the file.
    """
    if subject.recipe.status == "verified" and subject.pinned is None and subject.loaded.file.directory is not None:
        yield Finding(("status",), "status is verified, but no command is pinned", f"run `pin {subject.recipe.ref}`")


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
