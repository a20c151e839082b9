"""Checkpoints: one commit, mounted where the engine is told to look."""

import re
from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.document.nodes import Path
from gb300serve.lint.subject import LintSubject, option_path, rule
from gb300serve.recipe.model import ModelSection

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORT = re.compile(r"[0-9a-f]{7,39}")
_IN_PATH = re.compile(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")
_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
HUB_CACHE = "/root/.cache/huggingface"


def _models(subject: LintSubject) -> Iterator[tuple[Path, ModelSection]]:
    if subject.recipe.model is not None:
        yield ("model",), subject.recipe.model
    for index, model in enumerate(subject.recipe.models):
        yield ("models", index), model


@rule("MOD001", "warning")
def moving_revision(subject: LintSubject) -> Iterator[Finding]:
    """The revision is a branch, a tag or a shortened commit.

    Why: a branch moves, and a repository can be force-pushed: the files are then others than those that were measured,
    or missing. Only a full commit names one set of files.
    Fix: write the 40 digits of the commit.
    """
    for path, model in _models(subject):
        if model.revision is not None and not _COMMIT.fullmatch(model.revision):
            short = _SHORT.fullmatch(model.revision)
            what = "a shortened commit" if short else "a branch or a tag, which moves"
            message = f"revision `{model.revision}` is {what}"
            yield Finding((*path, "revision"), message, "write the full commit: 40 hexadecimal digits")


@rule("MOD002", "warning")
def model_without_revision(subject: LintSubject) -> Iterator[Finding]:
    """A checkpoint has no revision.

    Why: which files were measured is nowhere written down, and the next download may bring others.
    Fix: add `revision:` with the commit's 40 digits.
    """
    for path, model in _models(subject):
        if model.revision is None and (model.repo or model.path):
            named = model.repo or model.path
            key = "repo" if model.repo else "path"
            yield Finding((*path, key), f"{named} has no revision", "add revision: and the commit's 40 digits")


@rule("MOD003", "error")
def model_not_mounted(subject: LintSubject) -> Iterator[Finding]:
    """The engine looks for a model where nothing is mounted.

    Why: the engine takes a path that is not there for the name of a repository and dies after 7 s (`Repo id must be in
    the form …`), or docker makes an empty directory of it.
    Fix: give the model `path` and `mount`, and tell the engine the mount.
    """
    targets = [*(m.mount for m in subject.recipe.all_models if m.mount), *(m.target for m in subject.container.mounts)]
    for path, told in _told(subject):
        if told.startswith("/") and not any(covers(target, told) for target in targets):
            mounted = ", ".join(targets) or "nothing"
            yield Finding(
                path,
                f"the engine looks for a model at {told}, and mounted is {mounted}",
                "mount it, or tell the engine the mount",
            )


def _told(subject: LintSubject) -> Iterator[tuple[Path, str]]:
    """Every model, drafter and tokenizer that the engine is told, with its place."""
    keys = ("model_tag", "model", "model_path", "tokenizer", "tokenizer_path", "speculative_draft_model_path")
    for key in keys:
        if isinstance(value := subject.options.get(key), str):
            yield option_path(key), value
    config = subject.options.get("speculative_config")
    if isinstance(config, dict) and isinstance(value := config.get("model"), str):
        yield option_path("speculative_config", "model"), value


def covers(target: str, path: str) -> bool:
    """Whether `path` lies at or below the mount `target`."""
    return path == target or path.startswith(target.rstrip("/") + "/")


@rule("MOD004", "error")
def half_a_model_mount(subject: LintSubject) -> Iterator[Finding]:
    """A model says where it lies and not where it is mounted, or the reverse.

    Why: only a model with both is mounted: the engine finds nothing.
    Fix: write `path` (on the host) and `mount` (in the container).
    """
    for path, model in _models(subject):
        if (model.path is None) != (model.mount is None):
            has, lacks = ("path", "mount") if model.path else ("mount", "path")
            yield Finding((*path, has), f"the model has `{has}` and no `{lacks}`: it is not mounted", f"add `{lacks}:`")


@rule("MOD005", "error")
def engine_without_model(subject: LintSubject) -> Iterator[Finding]:
    """The engine is told no model.

    Why: vLLM then downloads and serves Qwen/Qwen3-0.6B without a word, and the container looks healthy; SGLang stops.
    Fix: add `model: /model` (`model_path` for SGLang), the place of the mount.
    """
    engine = subject.recipe.engine
    named = ("model_tag", "model", "model_path", "config")
    words = (*engine.launcher, *engine.extra_args)
    if any(subject.options.get(key) is not None for key in named):
        return
    if any(word.lstrip("-").partition("=")[0].replace("-", "_") in named or word.startswith("/") for word in words):
        return
    key = "model" if engine.name == "vllm" else "model_path"
    place = ("engine", "options") if engine.options else ("engine", "name")
    yield Finding(
        place, f"engine.options has no `{key}`", f"add `{key}: /model`, where the model is mounted", of_key=True
    )


@rule("MOD006", "warning")
def model_from_the_hub(subject: LintSubject) -> Iterator[Finding]:
    """The engine is told the name of a repository instead of a path.

    Why: it downloads whatever the main branch holds at that moment, into the container unless the hub's cache is
    mounted: hundreds of GiB again after each removal, and other weights under the same release.
    Fix: download the commit once, mount it, and write the mount; or write `revision` and mount the hub's cache.
    """
    for path, told in _told(subject):
        if not _HUB.fullmatch(told):
            continue
        if subject.options.get("revision") is None and path[-1] != "tokenizer":
            yield Finding(
                path, f"`{told}` is downloaded at boot, at no fixed revision", "mount the files, or add `revision:`"
            )
        elif not any(covers(mount.target, HUB_CACHE) for mount in subject.container.mounts):
            yield Finding(path, f"`{told}` is downloaded into the container, and lost with it", f"mount {HUB_CACHE}")


@rule("MOD007", "warning")
def path_of_another_revision(subject: LintSubject) -> Iterator[Finding]:
    """The directory carries another commit than the revision.

    Why: the release says one set of files and mounts another one.
    Fix: write `${model.revision}` in the path instead of its digits.
    """
    for path, model in _models(subject):
        commits = _IN_PATH.findall(model.path or "")
        if commits and model.revision and _COMMIT.fullmatch(model.revision) and model.revision not in commits:
            message = f"the path names commit {commits[0]}, and the revision is {model.revision}"
            yield Finding((*path, "path"), message, "write ${model.revision} in the path")
