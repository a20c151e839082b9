"""Rules for tool and reasoning parsers, and for models."""

import re
from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.document.nodes import Path
from gb300serve.lint.known import reasoning_parser
from gb300serve.lint.subject import LintSubject, contains, option_given, option_path, rule, vllm_rule


@vllm_rule("PRS001", "error")
def tool_choice_without_parser(subject: LintSubject) -> Iterator[Finding]:
    """Automatic tool choice is on, but no tool parser is set.

    Why: The engine exits seconds into the boot (`--enable-auto-tool-choice requires --tool-call-parser`).
    Fix: Add `tool_call_parser`.
    """
    if subject.vllm.enable_auto_tool_choice and not subject.vllm.tool_call_parser:
        parser = subject.checkpoint.tool_call_parser if subject.checkpoint else None
        hint = f"add `tool_call_parser: {parser}`" if parser else "add tool_call_parser with the model's parser"
        message = "enable_auto_tool_choice needs a tool_call_parser"
        yield Finding(option_path("enable_auto_tool_choice"), message, hint, of_key=True)


@vllm_rule("PRS002", "warning")
def tool_parser_without_choice(subject: LintSubject) -> Iterator[Finding]:
    """A tool parser is set, but automatic tool choice is off.

    Why: The engine never uses the parser. A request with tools gets HTTP 400, or the call arrives as text.
    Fix: Add `enable_auto_tool_choice: true`.
    """
    parser = subject.vllm.tool_call_parser
    if parser and not subject.vllm.enable_auto_tool_choice:
        message = f"tool_call_parser {parser} is not used without enable_auto_tool_choice"
        yield Finding(option_path("tool_call_parser"), message, "add `enable_auto_tool_choice: true`", of_key=True)


@rule("PRS003", "warning")
def thinking_without_parser(subject: LintSubject) -> Iterator[Finding]:
    """A reasoning model has no reasoning parser.

    Why: The reasoning becomes part of the reply, and tool calls inside it are lost. A simple smoke test does not detect
    this.
    Fix: Add `reasoning_parser`.
    """
    if option_given(subject.options, "reasoning_parser") or not subject.options:
        return
    parser = _reasoning_parser(subject)
    if parser is not None:
        message = f"{subject.repo} is a reasoning model, but reasoning_parser is not set"
        name = _registered(subject, "reasoning_parser", parser)
        hint = f"add `reasoning_parser: {name}`" if name else "add reasoning_parser with the model's parser"
        yield Finding(("engine", "options"), message, hint, of_key=True)


def _registered(subject: LintSubject, key: str, parser: str) -> str | None:
    """The engine's name of a parser: vLLM's deepseek_v41 is deepseekv41 or deepseek-v41 in SGLang."""
    if subject.is_vllm:
        return parser
    table = subject.tables.tables[-1]
    names = table.tool_call_parsers if key == "tool_call_parser" else table.reasoning_parsers
    return next((name for name in names if _folded(name) == _folded(parser)), None)


def _folded(parser: str) -> str:
    return parser.lower().replace("_", "").replace("-", "")


def _reasoning_parser(subject: LintSubject) -> str | None:
    if subject.checkpoint is not None:
        return subject.checkpoint.reasoning_parser if subject.checkpoint.thinking else None
    return reasoning_parser(subject.repo.rpartition("/")[2])


@rule("PRS004", "warning")
def parser_of_another_model(subject: LintSubject) -> Iterator[Finding]:
    """The parser does not match the checkpoint.

    Why: The engine accepts any registered name. Tool calls and reasoning in another format arrive as text.
    Fix: Write the checkpoint's parser.
    """
    known = subject.checkpoint
    if known is None:
        return
    for key, right in (("tool_call_parser", known.tool_call_parser), ("reasoning_parser", known.reasoning_parser)):
        given = subject.options.get(key)
        name = _registered(subject, key, right) if right is not None else None
        # With `auto` SGLang reads the checkpoint.
        if isinstance(given, str) and given and name is not None and given not in (name, "auto"):
            yield Finding(option_path(key), f"{known.repo} needs {name}, not {given}", f"write {name}")


@vllm_rule("PRS005", "note")
def no_tool_parser(subject: LintSubject) -> Iterator[Finding]:
    """The model supports tool calls, but the lane does not parse them.

    Why: The tool calls of an agent arrive as text and are not executed.
    Fix: Add `tool_call_parser` and `enable_auto_tool_choice: true`, unless no agent uses the lane.
    """
    parser = subject.checkpoint.tool_call_parser if subject.checkpoint else None
    if parser and not subject.vllm.tool_call_parser and not subject.vllm.enable_auto_tool_choice:
        message = "tool calls are returned as text: tool_call_parser is not set"
        hint = f"add `tool_call_parser: {parser}` and `enable_auto_tool_choice: true`"
        yield Finding(("engine", "options"), message, hint, of_key=True)


_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORT = re.compile(r"[0-9a-f]{7,39}")
_IN_PATH = re.compile(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")
_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
HUB_CACHE = "/root/.cache/huggingface"


@rule("MOD001", "warning")
def moving_revision(subject: LintSubject) -> Iterator[Finding]:
    """The revision is a branch, a tag or a short commit.

    Why: A branch moves, and a repository can be force-pushed. Only a full commit identifies the files that were
    measured.
    Fix: Write the 40 digits of the commit.
    """
    for path, model in subject.models:
        if model.revision is not None and not _COMMIT.fullmatch(model.revision):
            what = "a shortened commit" if _SHORT.fullmatch(model.revision) else "a branch or a tag, which moves"
            message = f"revision `{model.revision}` is {what}"
            yield Finding((*path, "revision"), message, "write the full commit: 40 hexadecimal digits")


@rule("MOD002", "warning")
def model_without_revision(subject: LintSubject) -> Iterator[Finding]:
    """A checkpoint has no revision.

    Why: Nobody can tell which files were measured, and the next download may bring others.
    Fix: Add `revision:` with the 40 digits of the commit.
    """
    for path, model in subject.models:
        if model.revision is None and (model.repo or model.path):
            place = (*path, "repo" if model.repo else "path")
            message = f"{model.repo or model.path} has no revision"
            yield Finding(place, message, "add revision: and the commit's 40 digits")


@rule("MOD003", "error")
def model_not_mounted(subject: LintSubject) -> Iterator[Finding]:
    """The engine loads a model from a path where nothing is mounted.

    Why: The engine reads a missing path as a repository name and exits after 7 s (`Repo id must be in the form …`).
    Fix: Give the model `path` and `mount`, and set the engine's model to the mount.
    """
    targets = [*(m.mount for m in subject.recipe.all_models if m.mount), *(m.target for m in subject.container.mounts)]
    mounted = f" (mounted: {', '.join(targets)})" if targets else ""
    for path, location in _locations(subject):
        if location.startswith("/") and not any(contains(target, location) for target in targets):
            message = f"the engine loads {location}, but nothing is mounted there{mounted}"
            yield Finding(path, message, "mount it, or set the engine's model to the mount")


def _locations(subject: LintSubject) -> Iterator[tuple[Path, str]]:
    """Every model, drafter and tokenizer of the options, with its place."""
    keys = ("model_tag", "model", "model_path", "tokenizer", "tokenizer_path", "speculative_draft_model_path")
    for key in keys:
        if isinstance(value := subject.options.get(key), str):
            yield option_path(key), value
    config = subject.options.get("speculative_config")
    if isinstance(config, dict) and isinstance(value := config.get("model"), str):
        yield option_path("speculative_config", "model"), value


@rule("MOD004", "error")
def half_a_model_mount(subject: LintSubject) -> Iterator[Finding]:
    """A model has a `path` without a `mount`, or the reverse.

    Why: Only a model with both is mounted; otherwise the engine does not find it.
    Fix: Write `path` (on the host) and `mount` (in the container).
    """
    for path, model in subject.models:
        if (model.path is None) != (model.mount is None):
            has, lacks = ("path", "mount") if model.path else ("mount", "path")
            yield Finding((*path, has), f"the model has `{has}` but no `{lacks}`: it is not mounted", f"add `{lacks}:`")


@rule("MOD005", "error")
def engine_without_model(subject: LintSubject) -> Iterator[Finding]:
    """No model is set for the engine.

    Why: vLLM then downloads and serves Qwen/Qwen3-0.6B without a warning, and the container looks healthy. SGLang
    exits.
    Fix: Add `model: /model` (`model_path` for SGLang), the target of the mount.
    """
    engine = subject.recipe.engine
    named = ("model_tag", "model", "model_path", "config")
    words = (word.lstrip("-").partition("=")[0].replace("-", "_") for word in (*engine.launcher, *engine.extra_args))
    if option_given(subject.options, *named) or any(word in named or word.startswith("/") for word in words):
        return
    key = "model" if subject.is_vllm else "model_path"
    place = ("engine", "options") if engine.options else ("engine", "name")
    hint = f"add `{key}: /model`, where the model is mounted"
    yield Finding(place, f"engine.options has no `{key}`", hint, of_key=True)


@rule("MOD006", "warning")
def model_from_the_hub(subject: LintSubject) -> Iterator[Finding]:
    """The engine loads a model by repository name instead of a path.

    Why: It downloads the current main branch, into the container unless the Hub cache is mounted. Each new container
    downloads hundreds of GiB, and the weights may differ.
    Fix: Download the commit once, mount it and set the mount; or write `revision` and mount the Hub cache.
    """
    for path, location in _locations(subject):
        if not _HUB.fullmatch(location):
            continue
        if subject.options.get("revision") is None and path[-1] != "tokenizer":
            message = f"`{location}` is downloaded at boot, at no fixed revision"
            yield Finding(path, message, "mount the files, or add `revision:`")
        elif not subject.is_mounted(HUB_CACHE):
            message = f"`{location}` is downloaded into the container, and lost with it"
            yield Finding(path, message, f"mount {HUB_CACHE}")


@rule("MOD007", "warning")
def path_of_another_revision(subject: LintSubject) -> Iterator[Finding]:
    """The model path contains another commit than the revision.

    Why: The recipe states one set of files and mounts another.
    Fix: Write `${model.revision}` in the path instead of the digits.
    """
    for path, model in subject.models:
        commits = _IN_PATH.findall(model.path or "")
        if commits and model.revision and _COMMIT.fullmatch(model.revision) and model.revision not in commits:
            message = f"the path names commit {commits[0]}, but the revision is {model.revision}"
            yield Finding((*path, "path"), message, "write ${model.revision} in the path")
