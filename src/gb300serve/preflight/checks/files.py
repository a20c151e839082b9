"""Files on the host: the model, the mounts, the patches."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.core.text import GIB, gib, summarize_names
from gb300serve.host.facts import DiskSpace, Patch
from gb300serve.host.missing import Missing
from gb300serve.host.model_files import ModelFiles
from gb300serve.preflight.subject import PreflightSubject, check


def _models(subject: PreflightSubject) -> tuple[ModelFiles, ...]:
    if subject.release is None or isinstance(subject.release.facts.models, Missing):
        return ()
    return subject.release.facts.models


def _fetching(model: ModelFiles) -> str | None:
    """The command that completes it; what is whole is kept."""
    if model.model.repo is None:
        return None
    revision = f" --revision {model.model.revision}" if model.model.revision else ""
    return f"hf download {model.model.repo}{revision} --local-dir {model.path}"


@check("PRE050", "error")
def model_not_there(subject: PreflightSubject) -> Iterator[Finding]:
    """The model's directory does not exist, or cannot be read.

    Why: Docker makes an empty directory, owned by root, of a mount source that is missing, and the engine looks for
    the model on the Hub.
    Fix: put the model there, or name the right directory in the site file (`models`).
    """
    for model in _models(subject):
        if not model.exists:
            yield Finding(("models",), f"{model.path} does not exist", _fetching(model))
        elif model.problem is not None:
            yield Finding(("models",), f"{model.problem}", "make it readable for your user, or run as root")


@check("PRE051", "error")
def model_incomplete(subject: PreflightSubject) -> Iterator[Finding]:
    """Files of the model are missing, or shorter than they say themselves.

    Why: the engine finds out minutes into the load, or takes another loader in silence.
    Fix: download again: what is whole is kept.
    """
    for model in _models(subject):
        if not model.exists or model.problem is not None or model.complete:
            continue
        yield Finding(("models",), f"{model.path} is incomplete: {', '.join(_lacks(model))}", _fetching(model))


def _lacks(model: ModelFiles) -> Iterator[str]:
    if not model.config:
        yield "no config.json that can be read"
    if not model.shards:
        yield "no *.safetensors and no index of them"
    if model.absent:
        yield f"{len(model.absent)} of {model.shards} files missing ({summarize_names(model.absent)})"
    if model.cut:
        names = summarize_names(model.cut)
        yield f"{len(model.cut)} of {model.shards} files are not as long as their headers say ({names})"


@check("PRE052", "error")
def model_of_another_revision(subject: PreflightSubject) -> Iterator[Finding]:
    """The model's directory claims another revision than the recipe pins.

    Why: every figure and receipt of the release was measured with the pinned one.
    Fix: download the pinned revision beside it, or pin the one that is there in a new release.
    """
    for model in _models(subject):
        here, wanted = model.revision, model.model.revision
        if here is not None and wanted is not None and not here.startswith(wanted):
            yield Finding(("models",), f"{model.path} is revision {here}, and {wanted} is pinned", _fetching(model))


@check("PRE053", "note")
def model_revision_unknown(subject: PreflightSubject) -> Iterator[Finding]:
    """Nothing in the model's directory says of which revision it is.

    Why: two revisions of one model have the same file names.
    Fix: name the directory after the revision, or let `hf download` make it.
    """
    for model in _models(subject):
        if model.exists and model.problem is None and model.model.revision and model.revision is None:
            yield Finding(("models",), f"not checked: of which revision {model.path} is")


@check("PRE054", "error")
def model_links_lead_away(subject: PreflightSubject) -> Iterator[Finding]:
    """Files of the model are links that lead out of the directory that is mounted.

    Why: a snapshot of the Hugging Face cache is links into `../../blobs`: in the container they lead nowhere.
    Fix: download with `--local-dir`, or mount the whole cache.
    """
    for model in _models(subject):
        if model.linked_away:
            names = summarize_names(model.linked_away)
            message = f"{names} in {model.path} link out of it: in the container they lead nowhere"
            yield Finding(("models",), message, _fetching(model))


@check("PRE055", "error")
def mount_source_missing(subject: PreflightSubject) -> Iterator[Finding]:
    """A mount's source does not exist.

    Why: Docker makes an empty directory of it, owned by root, and mounts that: a patch is silently not there, a cache
    is empty.
    Fix: put it there, or name the right directory in the site file (`cache`, `patches`).
    """
    models = {model.path for model in _models(subject)}
    for path in _missing_sources(subject):
        if path not in models:
            pinned = any(_below(patch.path, path) for patch in _patches(subject))
            way = "put the files that the recipe pins there" if pinned else f"mkdir -p {path} if it is a cache"
            hint = f"{way}; or the site file names the wrong directory"
            yield Finding(("sources",), f"{path} does not exist, and is to be mounted", hint)


@check("PRE056", "error")
def patch_differs(subject: PreflightSubject) -> Iterator[Finding]:
    """A mounted file is not the one whose sha256 the recipe states.

    Why: a patch over the image that is another version serves, and serves wrongly.
    Fix: put the right file there, or state the new digest in a new release.
    """
    missing = _missing_sources(subject)
    for patch in _patches(subject):
        if patch.found != patch.wanted and not any(_below(patch.path, path) for path in missing):
            yield Finding(("patches",), _differs(patch), "put the file that the recipe pins there: sha256sum tells")


def _patches(subject: PreflightSubject) -> tuple[Patch, ...]:
    if subject.release is None or isinstance(subject.release.facts.patches, Missing):
        return ()
    return subject.release.facts.patches


def _missing_sources(subject: PreflightSubject) -> tuple[str, ...]:
    if subject.release is None or isinstance(subject.release.facts.sources, Missing):
        return ()
    return tuple(source.path for source in subject.release.facts.sources if not source.exists)


def _below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _differs(patch: Patch) -> str:
    if patch.found is None:
        return f"the patch {patch.problem or patch.path} (its sha256 should be {patch.wanted[:12]}…)"
    return f"{patch.path} has sha256 {patch.found[:12]}…, and the recipe states {patch.wanted[:12]}…"


# A tuned cache is some MiB and what the engine compiles some hundred.
_CACHE_FREE = 2 * GIB


def _disks(subject: PreflightSubject) -> tuple[DiskSpace, ...]:
    if subject.release is None or isinstance(subject.release.facts.disks, Missing):
        return ()
    return subject.release.facts.disks


@check("PRE040", "warning")
def network_filesystem(subject: PreflightSubject) -> Iterator[Finding]:
    """The model lies on a network filesystem.

    Why: 510 GB took 1,246 s and then about 600 s for the drafter from a CIFS share, more at every boot; from a local
    NVMe 133 s and 20 s.
    Fix: copy the model to a local disk and name that directory in the site file (`models`).
    """
    for disk in _disks(subject):
        if disk.use == "model" and disk.filesystem is not None and disk.filesystem.network:
            kind, source = disk.filesystem.kind, disk.filesystem.source
            message = (
                f"{disk.path} lies on {kind} ({source}): a load that takes 153 s from a local NVMe took 1,246 s and "
                "then about 600 s for the drafter from a CIFS share"
            )
            yield Finding(("disks",), message, "copy it to a local disk, and name that in the site file (models)")


@check("PRE041", "warning")
def disk_nearly_full(subject: PreflightSubject) -> Iterator[Finding]:
    """The disk of a cache is nearly full.

    Why: the engine compiles and tunes into it without a word when it cannot write: the next boot tunes again, 74
    minutes.
    Fix: free some space, or name another directory in the site file (`cache`).
    """
    for disk in _disks(subject):
        if disk.use == "cache" and disk.free < _CACHE_FREE:
            yield Finding(("disks",), f"{gib(disk.free)} are free at {disk.path}", "free some space there")


@check("PRE042", "error")
def state_directory_unwritable(subject: PreflightSubject) -> Iterator[Finding]:
    """Nothing can be written to the state directory.

    Why: the launch would leave no log and no record, and nobody could say later what was started.
    Fix: give the directory to your user, or name another one in the site file (`state`).
    """
    state = subject.host.state
    if not isinstance(state, Missing) and state.problem is not None:
        yield Finding(("state",), f"{state.path}: {state.problem}", "`state` in the site file names another directory")
