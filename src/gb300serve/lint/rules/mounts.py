"""Mounts: sources that docker takes for something else, patches without a hash, caches that are lost."""

import re
from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.document.nodes import Path
from gb300serve.lint.known import tuning_store
from gb300serve.lint.rules.model import covers
from gb300serve.lint.subject import LintSubject, rule, vllm_rule
from gb300serve.recipe.model import MountSection

VLLM_CACHE = "/root/.cache/vllm"
_VOLUME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_CODE = re.compile(r"\.(?:py|pyc|pth|so(?:\.\d+)*|cu|cuh|sh)$")
_IMAGE = re.compile(
    r"/(?:usr|opt|lib|lib64|bin|sbin|etc)/|/(?:dist|site)-packages/|^/(?:sgl-workspace|vllm-workspace|workspace)/"
)


def _sources(subject: LintSubject) -> Iterator[tuple[Path, str]]:
    """Every path on the host, with its place."""
    if subject.recipe.model is not None and subject.recipe.model.path:
        yield ("model", "path"), subject.recipe.model.path
    for index, model in enumerate(subject.recipe.models):
        if model.path:
            yield ("models", index, "path"), model.path
    for index, mount in enumerate(subject.container.mounts):
        yield ("container", "mounts", index, "source"), mount.source


def _targets(subject: LintSubject) -> Iterator[tuple[Path, str]]:
    """Every path in the container, with its place."""
    if subject.recipe.model is not None and subject.recipe.model.mount:
        yield ("model", "mount"), subject.recipe.model.mount
    for index, model in enumerate(subject.recipe.models):
        if model.mount:
            yield ("models", index, "mount"), model.mount
    for index, mount in enumerate(subject.container.mounts):
        yield ("container", "mounts", index, "target"), mount.target


@rule("MNT001", "error")
def relative_source(subject: LintSubject) -> Iterator[Finding]:
    """A path on the host does not begin at the root.

    Why: docker refuses a relative path, takes a bare word for the name of a volume (which is then empty), and knows no
    `~`: no shell sees this path.
    Fix: write the whole path, or begin with `${models}`, `${cache}` or `${patches}`.
    """
    for path, source in _sources(subject):
        if not source.startswith(("/", "${")):
            what = "docker takes it for a volume" if _VOLUME.fullmatch(source) else "docker refuses it"
            yield Finding(
                path, f"`{source}` is not a whole path: {what}", "begin with /, ${models}, ${cache} or ${patches}"
            )


@rule("MNT002", "error")
def relative_target(subject: LintSubject) -> Iterator[Finding]:
    """A path in the container does not begin at the root.

    Why: docker refuses the mount (`mount path must be absolute`).
    Fix: write the whole path.
    """
    for path, target in _targets(subject):
        if not target.startswith("/"):
            yield Finding(path, f"`{target}` is not a whole path in the container", f"write /{target.lstrip('./')}")


@rule("MNT003", "error")
def colon_in_path(subject: LintSubject) -> Iterator[Finding]:
    """A path of a mount holds a colon.

    Why: `-v` separates its parts with colons: docker refuses the word or mounts something else. `:ro` at the end of a
    path is such a part too.
    Fix: rename the directory (or link to it); read-only is `read_only: true`.
    """
    for path, text in (*_sources(subject), *_targets(subject)):
        if ":" in re.sub(r"\$\{[^}]*\}", "", text):
            mode = text.rpartition(":")[2]
            hint = (
                "write `read_only: true` and remove it"
                if mode in ("ro", "rw", "z", "Z")
                else "use a path without colons"
            )
            yield Finding(path, f"`{text}` holds a colon, which separates the parts of a mount", hint)


@rule("MNT004", "error")
def two_mounts_at_one_place(subject: LintSubject) -> Iterator[Finding]:
    """Two mounts have the same place in the container.

    Why: docker refuses the container (`Duplicate mount point`).
    Fix: give each its own place.
    """
    seen: dict[str, Path] = {}
    for path, target in _targets(subject):
        place = target.rstrip("/") or "/"
        if place in seen:
            first = ".".join(map(str, seen[place]))
            yield Finding(path, f"{target} is taken by {first}", "mount it elsewhere")
        seen.setdefault(place, path)


@rule("MNT005", "warning")
def patch_without_sha256(subject: LintSubject) -> Iterator[Finding]:
    """A file is laid over the image, or code mounted into it, without its hash.

    Why: the release says nothing about what it runs: the file can change under it, and a hook that fails to install is
    one line on stderr while the lane serves at half the speed.
    Fix: add `sha256:` (`sha256sum FILE`); for a directory one line a file.
    """
    for index, mount in enumerate(subject.container.mounts):
        if mount.sha256 is None and _is_patch(mount):
            message = f"{mount.target} is code from outside the image, without a sha256"
            yield Finding(("container", "mounts", index, "target"), message, "add `sha256:` of the file")


def _is_patch(mount: MountSection) -> bool:
    code = _CODE.search(mount.target) or _CODE.search(mount.source)
    return (
        bool(code)
        or mount.source.startswith("${patches}")
        or bool(_IMAGE.search(mount.target) and "." in mount.target.rpartition("/")[2])
    )


@vllm_rule("MNT006", "warning")
def cache_not_mounted(subject: LintSubject) -> Iterator[Finding]:
    """The engine's cache is lost with the container.

    Why: kernel tuning takes 74 minutes and its result lies in the cache: without a mount each new container tunes and
    compiles again.
    Fix: mount `${cache}` at /root/.cache/vllm.
    """
    if subject.vllm is None or subject.container.user not in (None, "root", "0", "0:0"):
        return
    root = subject.container.env.get("VLLM_CACHE_ROOT", VLLM_CACHE)
    if not any(covers(mount.target, root) for mount in subject.container.mounts):
        place = ("container", "mounts") if subject.container.mounts else ("container",)
        message = f"nothing is mounted at {root}: each new container tunes its kernels again"
        yield Finding(place, message, f'add {{source: "${{cache}}", target: {root}}}', of_key=True)


@vllm_rule("MNT007", "note")
def tuning_outside_cache(subject: LintSubject) -> Iterator[Finding]:
    """This engine version keeps its kernel tuning outside the mounted cache.

    Why: vLLM 0.33 on one GPU leaves it to FlashInfer, under /root/.cache/flashinfer: with only /root/.cache/vllm
    mounted it is lost with the container, and the next one tunes again.
    Fix: mount that directory too, or move it with VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR.
    """
    view, store = subject.vllm, tuning_store(subject.version)
    if view is None or store is None or view.tensor_parallel_size > 1 or view.flashinfer_autotune is False:
        return
    place = subject.container.env.get(store.variable, store.path)
    mounts = subject.container.mounts
    if not any(covers(mount.target, place) for mount in mounts) and any(covers(m.target, VLLM_CACHE) for m in mounts):
        message = f"vllm {subject.version} tunes into {place}, which is not mounted"
        hint = f"mount it, or add {store.variable}: {VLLM_CACHE}/flashinfer_autotune"
        yield Finding(("container", "mounts"), message, hint, of_key=True)


@rule("MNT008", "warning")
def writable_hashed_mount(subject: LintSubject) -> Iterator[Finding]:
    """A mount with a hash is said to be writable.

    Why: what has a hash is mounted read-only whatever `read_only` says, so that it stays what it was.
    Fix: remove `read_only: false`.
    """
    for index, mount in enumerate(subject.container.mounts):
        if mount.sha256 is not None and mount.read_only is False:
            place = ("container", "mounts", index, "read_only")
            yield Finding(place, "a mount with sha256 is read-only", "remove `read_only: false`")
