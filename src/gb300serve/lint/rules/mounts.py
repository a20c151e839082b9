"""Rules for mounts: invalid paths, patches without a sha256, caches that are lost."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from gb300serve.core.rules import Finding
from gb300serve.document.nodes import Path
from gb300serve.lint.known import tuning_store
from gb300serve.lint.rules.parsers import MODEL_OPTIONS
from gb300serve.lint.subject import LintSubject, contains, from_json, rule, vllm_rule
from gb300serve.recipe.model import MountSection

VLLM_CACHE = "/root/.cache/vllm"
# Options whose values are files or directories in the container; a value may also be `name=path`, or JSON.
_FILES = frozenset(
    {
        "chat_template", "completion_template", "config", "default_mm_loras", "generation_config", "hf_config_path",
        "lmcache_config_file", "log_config_file", "lora_modules", "lora_paths", "quantization_param_path",
        "reasoning_parser_plugin", "speculative_ngram_external_corpus_path", "ssl_ca_certs", "ssl_certfile",
        "ssl_keyfile", "structured_outputs_config", "tool_parser_plugin", "uno_lora_path",
    }
)  # fmt: skip
_CHECKED_ELSEWHERE = frozenset({*MODEL_OPTIONS, "speculative_config"})
_FILE_VARIABLES = frozenset({"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "VLLM_LOGGING_CONFIG_PATH"})
# Every file below these paths may be executed.
_CODE_VARIABLES = frozenset({"LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONSTARTUP"})
_VOLUME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_CODE = re.compile(r"\.(?:py|pyc|pth|so(?:\.\d+)*|cu|cuh|sh)$")
# What the engines' official images contain, besides system libraries.
_IN_OFFICIAL = re.compile(r"/(?:usr|vllm-workspace|sgl-workspace|workspace|etc/ssl/certs)/")
_PATH = re.compile(r"(?:[\w.-]+=)?(?P<path>(?:~|\.\.?)?/[^/].*)")
_PACKAGES = re.compile(r"/(?:dist|site)-packages(?:/|$)")
_IMAGE = re.compile(
    r"/(?:usr|opt|lib|lib64|bin|sbin|etc)/|/(?:dist|site)-packages/|^/(?:sgl-workspace|vllm-workspace|workspace)/"
)


def _sources(subject: LintSubject) -> list[tuple[Path, str]]:
    """Every path on the host, with its place."""
    models = [((*place, "path"), model.path) for place, model in subject.models if model.path]
    mounts = enumerate(subject.container.mounts)
    own = [(("container", "mounts", index, "source"), mount.source) for index, mount in mounts if mount.source]
    return [*models, *own]


def _targets(subject: LintSubject) -> list[tuple[Path, str]]:
    """Every path in the container, with its place."""
    models = [((*place, "mount"), model.mount) for place, model in subject.models if model.mount]
    mounts = enumerate(subject.container.mounts)
    return [*models, *((("container", "mounts", index, "target"), mount.target) for index, mount in mounts)]


@rule("MNT001", "error")
def relative_source(subject: LintSubject) -> Iterator[Finding]:
    """A host path is not absolute.

    Why: Docker rejects relative paths, treats a bare name as an (empty) volume, and does not expand `~`.
    Fix: Write an absolute path, or start with `${models}`, `${cache}` or `${patches}`. A volume is `volume: NAME`.
    """
    for path, source in _sources(subject):
        if not source.startswith(("/", "${")):
            what = "Docker treats it as a volume" if _VOLUME.fullmatch(source) else "Docker rejects it"
            hint = (
                "write a path that starts with /, ${models}, ${cache} or ${patches}; for a volume, write `volume: NAME`"
            )
            yield Finding(path, f"`{source}` is not an absolute path: {what}", hint)


@rule("MNT002", "error")
def relative_target(subject: LintSubject) -> Iterator[Finding]:
    """A container path is not absolute.

    Why: Docker rejects the mount (`mount path must be absolute`).
    Fix: Write an absolute path.
    """
    for path, target in _targets(subject):
        if not target.startswith("/"):
            yield Finding(path, f"`{target}` is not an absolute path in the container", f"write /{target.lstrip('./')}")


@rule("MNT003", "error")
def colon_in_path(subject: LintSubject) -> Iterator[Finding]:
    """A mount path contains a colon.

    Why: `-v` separates its parts with colons, so Docker rejects the argument or mounts something else. `:ro` at the end
    of a path is such a part too.
    Fix: Rename the directory or link to it. Write `read_only: true` for a read-only mount.
    """
    for path, text in (*_sources(subject), *_targets(subject)):
        if ":" in re.sub(r"\$\{[^}]*\}", "", text):
            mode = text.rpartition(":")[2]
            hint = f"remove `:{mode}` from the path" if mode in ("ro", "rw", "z", "Z") else "use a path without colons"
            hint += ", and write `read_only: true`" if mode == "ro" else ""
            yield Finding(path, f"`{text}` contains a colon, which separates the parts of a mount", hint)


@rule("MNT004", "error")
def two_mounts_at_one_place(subject: LintSubject) -> Iterator[Finding]:
    """Two mounts have the same target.

    Why: Docker rejects the container (`Duplicate mount point`).
    Fix: Give each mount its own target.
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
    """A mount replaces code in the image without a sha256.

    Why: The file can change without a change to the recipe. A hook that fails to install logs one line on stderr, and
    the lane serves at half the speed.
    Fix: Add `sha256:` (`sha256sum FILE`); for a directory, one line per file.
    """
    executed = list(_executed(subject))
    for index, mount in enumerate(subject.container.mounts):
        place = ("container", "mounts", index, "target")
        if mount.sha256 is None and _is_patch(mount):
            message = f"{mount.target} is code from outside the image, without a sha256"
            yield Finding(place, message, "add `sha256:` of the file")
        elif not isinstance(mount.sha256, str):
            below = (entry for entry in executed if contains(mount.target, entry[0]))
            for path, cause in islice((entry for entry in below if not _is_hashed(entry[0], mount)), 1):
                message = f"{cause} runs code from {path}, which is mounted without a sha256"
                yield Finding(place, message, "add `sha256: {FILE: …}`, one entry for each file (`sha256sum FILE`)")


def _is_hashed(path: str, mount: MountSection) -> bool:
    """Whether the file has a hash; for a directory, whether any file has."""
    hashed = mount.sha256 if isinstance(mount.sha256, dict) else {}
    return path.removeprefix(mount.target.rstrip("/") + "/") in hashed if _CODE.search(path) else bool(hashed)


def _executed(subject: LintSubject) -> Iterator[tuple[str, str]]:
    """Paths in the container that hold code to execute, each with the setting that names it."""
    section, container = subject.recipe.engine, subject.container
    words = [("the entrypoint", container.entrypoint), *(("engine.launcher", word) for word in section.launcher)]
    for name, value in (*words, *((key, value) for _, key, value in subject.arguments), *container.env.items()):
        for path in _paths(value):
            if name in _CODE_VARIABLES or _CODE.search(path):
                yield path, name


def _paths(value: Any) -> Iterator[str]:
    """The paths in a value: words of a text, also as `name=path`, and everything in JSON."""
    value = from_json(value)
    if isinstance(value, str):
        yield from (match["path"] for word in re.split(r"[\s:]+", value) if (match := _PATH.fullmatch(word)))
    elif isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _paths(item)


def _is_patch(mount: MountSection) -> bool:
    source = mount.source or ""
    if source.startswith("${patches}") or _CODE.search(mount.target) or _CODE.search(source):
        return True
    is_file = "." in mount.target.rpartition("/")[2]
    return bool(_PACKAGES.search(mount.target) or (is_file and _IMAGE.search(mount.target)))


@vllm_rule("MNT006", "warning")
def cache_not_mounted(subject: LintSubject) -> Iterator[Finding]:
    """The engine's cache is lost with the container.

    Why: Kernel tuning takes 74 minutes and is stored in the cache. Without a mount each new container tunes and
    compiles again.
    Fix: Mount `${cache}` at /root/.cache/vllm.
    """
    root = subject.container.env.get("VLLM_CACHE_ROOT", VLLM_CACHE)
    if subject.container.user in (None, "root", "0", "0:0") and not subject.is_mounted(root):
        place = ("container", "mounts") if subject.container.mounts else ("container",)
        message = f"nothing is mounted at {root}: each new container tunes its kernels again"
        yield Finding(place, message, f'add {{source: "${{cache}}", target: {root}}}', of_key=True)


@vllm_rule("MNT007", "note")
def tuning_outside_cache(subject: LintSubject) -> Iterator[Finding]:
    """This engine version stores its kernel tuning outside the mounted cache.

    Why: On one GPU vLLM 0.33 leaves the tuning to FlashInfer, in /root/.cache/flashinfer. If only /root/.cache/vllm is
    mounted, each new container tunes again.
    Fix: Mount that directory too, or move it with VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR.
    """
    view, store = subject.vllm, tuning_store(subject.version)
    if store is None or view.tensor_parallel_size > 1 or view.flashinfer_autotune is False:
        return
    directory = subject.container.env.get(store.variable, store.path)
    if subject.is_mounted(VLLM_CACHE) and not subject.is_mounted(directory):
        message = f"vllm {subject.version} stores its tuning in {directory}, which is not mounted"
        hint = f"mount it, or add {store.variable}: {VLLM_CACHE}/flashinfer_autotune"
        yield Finding(("container", "mounts"), message, hint, of_key=True)


@rule("MNT008", "warning")
def writable_hashed_mount(subject: LintSubject) -> Iterator[Finding]:
    """A mount with a sha256 has `read_only: false`.

    Why: Mounts with a sha256 are always read-only, so that the files cannot change.
    Fix: Remove `read_only: false`.
    """
    for index, mount in enumerate(subject.container.mounts):
        if mount.sha256 is not None and mount.read_only is False:
            place = ("container", "mounts", index, "read_only")
            yield Finding(place, "a mount with sha256 is read-only", "remove `read_only: false`")


@rule("MNT009", "warning")
def file_outside_mounts(subject: LintSubject) -> Iterator[Finding]:
    """The engine reads a file from a path where nothing is mounted.

    Why: The container sees only the image and the mounts. A chat template, an adapter, a certificate or a plugin that
    is named by its path on the host is not found, and the engine exits or looks for a repository of that name.
    Fix: Mount the file or its directory, and write the path below the target of the mount.
    """
    targets = [target for _, target in _targets(subject)]
    variables = [(("container", "env", name), name, value) for name, value in subject.container.env.items()]
    for place, key, value in (*subject.arguments, *variables):
        is_inline = isinstance(value, str) and ("{{" in value or "{%" in value)
        for path in () if is_inline or key in _CHECKED_ELSEWHERE else _paths(value):
            if any(contains(target, path) for target in targets):
                continue
            binds = ((mount.source, mount.target) for mount in subject.container.mounts if mount.source is not None)
            source, target = next((bind for bind in binds if contains(bind[0], path)), ("/", "/"))
            if source != "/":
                inside = target.rstrip("/") + path.removeprefix(source.rstrip("/"))
                message = f"{key} names {path}, a path on the host: in the container the mount puts it at {inside}"
                yield Finding(place, message, f"write {inside}")
            elif key in _FILES or key in _FILE_VARIABLES:
                yield from _not_mounted(subject, place, key, path)


def _not_mounted(subject: LintSubject, place: Path, key: str, path: str) -> Iterator[Finding]:
    if _IN_OFFICIAL.match(path):
        return
    message = f"{key} names {path}, but nothing is mounted there"
    hint = "mount it, and write the path below the target of the mount"
    # An image of the user's own may contain the file.
    yield Finding(place, message, hint, severity="warning" if subject.is_official_image else "note")
