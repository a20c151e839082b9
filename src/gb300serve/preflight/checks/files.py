"""Checks of files on the host: model, mounts, patches, disks."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.core.text import GIB, gib, summarize_names
from gb300serve.core.values import Missing
from gb300serve.host.facts import Patch
from gb300serve.host.model_files import ModelFiles
from gb300serve.preflight.subject import PreflightSubject, check, known


def _fetching(model: ModelFiles) -> str | None:
    """The download command; it keeps complete files."""
    if model.model.repo is None:
        return None
    revision = f" --revision {model.model.revision}" if model.model.revision else ""
    return f"hf download {model.model.repo}{revision} --local-dir {model.path}"


@check("PRE050", "error")
def model_not_there(subject: PreflightSubject) -> Iterator[Finding]:
    """The model directory does not exist or cannot be read.

    Why: Docker creates an empty directory owned by root for a missing mount source, and the engine looks for the model
    on the Hub.
    Fix: Put the model there, or set the right directory in the site file (`models`).
    """
    for model in known(subject.facts.models):
        if not model.exists:
            yield Finding(("models",), f"{model.path} does not exist", _fetching(model))
        elif model.problem is not None:
            yield Finding(("models",), model.problem, "make it readable for your user, or run as root")


@check("PRE051", "error")
def model_incomplete(subject: PreflightSubject) -> Iterator[Finding]:
    """Model files are missing or incomplete.

    Why: The engine detects this minutes into the load, or switches to another loader without a warning.
    Fix: Download again; complete files are kept.
    """
    for model in known(subject.facts.models):
        if not model.exists or model.problem is not None or model.complete:
            continue
        yield Finding(("models",), f"{model.path} is incomplete: {', '.join(_lacks(model))}", _fetching(model))


def _lacks(model: ModelFiles) -> Iterator[str]:
    if not model.config:
        yield "no readable config.json"
    if not model.shards:
        yield "no *.safetensors files and no index"
    if model.absent:
        yield f"{len(model.absent)} of {model.shards} files missing ({summarize_names(model.absent)})"
    if model.cut:
        names = summarize_names(model.cut)
        yield f"{len(model.cut)} of {model.shards} files are not as long as their headers say ({names})"


@check("PRE052", "error")
def model_of_another_revision(subject: PreflightSubject) -> Iterator[Finding]:
    """The model directory has another revision than the recipe pins.

    Why: Every figure and receipt of the release was measured with the pinned revision.
    Fix: Download the pinned revision next to it, or pin the existing one in a new release.
    """
    for model in known(subject.facts.models):
        here, wanted = model.revision, model.model.revision
        if here is not None and wanted is not None and not here.startswith(wanted):
            yield Finding(("models",), f"{model.path} is revision {here}, but {wanted} is pinned", _fetching(model))


@check("PRE053", "note")
def model_revision_unknown(subject: PreflightSubject) -> Iterator[Finding]:
    """The revision of the model directory is unknown.

    Why: Two revisions of one model have the same file names.
    Fix: Name the directory after the revision, or create it with `hf download`.
    """
    for model in known(subject.facts.models):
        if model.exists and model.problem is None and model.model.revision and model.revision is None:
            yield Finding(("models",), f"not checked: the revision of {model.path}")


@check("PRE054", "error")
def model_links_lead_away(subject: PreflightSubject) -> Iterator[Finding]:
    """Model files are links that leave the mounted directory.

    Why: A snapshot of the Hugging Face cache links to `../../blobs`, which does not exist in the container.
    Fix: Download with `--local-dir`, or mount the whole cache.
    """
    for model in known(subject.facts.models):
        if model.linked_away:
            names = summarize_names(model.linked_away)
            message = f"{names} in {model.path} link outside the directory: the links are broken in the container"
            yield Finding(("models",), message, _fetching(model))


@check("PRE055", "error")
def mount_source_missing(subject: PreflightSubject) -> Iterator[Finding]:
    """A mount source does not exist.

    Why: Docker creates an empty directory owned by root and mounts it. A patch is then missing without a warning, and a
    cache is empty.
    Fix: Create the source, or set the right directory in the site file (`cache`, `patches`).
    """
    models = {model.path for model in known(subject.facts.models)}
    for path in _missing_sources(subject):
        if path not in models:
            pinned = any(_below(patch.path, path) for patch in known(subject.facts.patches))
            way = "put the files that the recipe pins there" if pinned else f"mkdir -p {path} if it is a cache"
            hint = f"{way}; or the site file names the wrong directory"
            yield Finding(("sources",), f"{path} does not exist but is a mount source", hint)


@check("PRE056", "error")
def patch_differs(subject: PreflightSubject) -> Iterator[Finding]:
    """A mounted file does not have the sha256 that the recipe states.

    Why: A patch of another version may run, with wrong results.
    Fix: Put the right file there, or state the new digest in a new release.
    """
    missing = _missing_sources(subject)
    for patch in known(subject.facts.patches):
        if patch.found != patch.wanted and not any(_below(patch.path, path) for path in missing):
            yield Finding(("patches",), _differs(patch), "put the pinned file there (check: sha256sum)")


def _missing_sources(subject: PreflightSubject) -> tuple[str, ...]:
    return tuple(source.path for source in known(subject.facts.sources) if not source.exists)


def _below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _differs(patch: Patch) -> str:
    if patch.found is None:
        return f"the patch {patch.problem or patch.path} (its sha256 should be {patch.wanted[:12]}…)"
    return f"{patch.path} has sha256 {patch.found[:12]}…, but the recipe states {patch.wanted[:12]}…"


# A tuned cache is some MiB and what the engine compiles some hundred.
_CACHE_FREE = 2 * GIB


@check("PRE040", "warning")
def network_filesystem(subject: PreflightSubject) -> Iterator[Finding]:
    """The model is on a network filesystem.

    Why: From a CIFS share 510 GB took 1,246 s, then about 600 s for the drafter, and more at every boot. A local NVMe
    took 133 s and 20 s.
    Fix: Copy the model to a local disk and set that directory in the site file (`models`).
    """
    for disk in known(subject.facts.disks):
        if disk.use == "model" and disk.filesystem is not None and disk.filesystem.network:
            kind, source = disk.filesystem.kind, disk.filesystem.source
            message = (
                f"{disk.path} is on {kind} ({source}): a load that takes 153 s from a local NVMe took 1,246 s and "
                "then about 600 s for the drafter from a CIFS share"
            )
            yield Finding(("disks",), message, "copy it to a local disk, and name that in the site file (models)")


@check("PRE041", "warning")
def disk_nearly_full(subject: PreflightSubject) -> Iterator[Finding]:
    """The disk of a cache is almost full.

    Why: If the engine cannot write its cache, it gives no warning, and the next boot tunes again for 74 minutes.
    Fix: Free some space, or set another directory in the site file (`cache`).
    """
    for disk in known(subject.facts.disks):
        if disk.use == "cache" and disk.free < _CACHE_FREE:
            yield Finding(("disks",), f"{gib(disk.free)} are free at {disk.path}", "free some space there")


@check("PRE042", "error")
def state_directory_unwritable(subject: PreflightSubject) -> Iterator[Finding]:
    """The state directory is not writable.

    Why: The launch would leave no log and no record of what was started.
    Fix: Make the directory writable for your user, or set another one in the site file (`state`).
    """
    state = subject.host.state
    if not isinstance(state, Missing) and state.problem is not None:
        yield Finding(("state",), f"{state.path}: {state.problem}", "`state` in the site file names another directory")
