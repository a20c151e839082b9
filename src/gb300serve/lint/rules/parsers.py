"""Parsers: tool calls and thoughts that would be narrated as text."""

from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.lint.known import plain_models, thinking
from gb300serve.lint.subject import LintSubject, option_given, option_path, rule, vllm_rule


@vllm_rule("PRS001", "error")
def tool_choice_without_parser(subject: LintSubject) -> Iterator[Finding]:
    """Automatic tool choice is on, and no tool parser is named.

    Why: the engine refuses it seconds into the boot (`--enable-auto-tool-choice requires --tool-call-parser`).
    Fix: add `tool_call_parser`.
    """
    view = subject.vllm
    if view is not None and view.enable_auto_tool_choice and not view.tool_call_parser:
        parser = subject.checkpoint.tool_call_parser if subject.checkpoint else None
        hint = f"add `tool_call_parser: {parser}`" if parser else "add tool_call_parser with the model's parser"
        message = "enable_auto_tool_choice needs a tool_call_parser"
        yield Finding(option_path("enable_auto_tool_choice"), message, hint, of_key=True)


@vllm_rule("PRS002", "warning")
def tool_parser_without_choice(subject: LintSubject) -> Iterator[Finding]:
    """A tool parser is named, and automatic tool choice is off.

    Why: the parser is never asked: a request with tools gets HTTP 400, or a call told as text.
    Fix: add `enable_auto_tool_choice: true`.
    """
    view = subject.vllm
    if view is not None and view.tool_call_parser and not view.enable_auto_tool_choice:
        message = f"tool_call_parser {view.tool_call_parser} is not used without enable_auto_tool_choice"
        yield Finding(option_path("tool_call_parser"), message, "add `enable_auto_tool_choice: true`", of_key=True)


@rule("PRS003", "warning")
def thinking_without_parser(subject: LintSubject) -> Iterator[Finding]:
    """The model thinks before it answers, and no reasoning parser is named.

    Why: its thoughts become part of the answer, tool calls inside them are lost, and no plain smoke test notices.
    Fix: add `reasoning_parser`.
    """
    if option_given(subject.options, "reasoning_parser") or not subject.options:
        return
    parser = _reasoning_parser(subject)
    if parser is not None:
        message = f"{subject.repo} thinks before it answers, and there is no reasoning_parser"
        name = _registered(subject, "reasoning_parser", parser)
        hint = f"add `reasoning_parser: {name}`" if name else "add reasoning_parser with the model's parser"
        yield Finding(("engine", "options"), message, hint, of_key=True)


def _registered(subject: LintSubject, key: str, parser: str) -> str | None:
    """The engine's own name of a parser: vLLM's deepseek_v41 is deepseekv41 and deepseek-v41 to SGLang."""
    if subject.vllm is not None:
        return parser
    table = subject.tables.tables[-1]
    names = table.tool_call_parsers if key == "tool_call_parser" else table.reasoning_parsers
    return next((name for name in names if _folded(name) == _folded(parser)), None)


def _folded(parser: str) -> str:
    return parser.lower().replace("_", "").replace("-", "")


def _reasoning_parser(subject: LintSubject) -> str | None:
    if subject.checkpoint is not None:
        return subject.checkpoint.reasoning_parser if subject.checkpoint.thinking else None
    name = subject.repo.rpartition("/")[2]
    if not name or plain_models().search(name):
        return None
    return next((known.parser for known in thinking() if known.repo.search(name)), None)


@rule("PRS004", "warning")
def parser_of_another_model(subject: LintSubject) -> Iterator[Finding]:
    """A parser is not the one that the checkpoint was made for.

    Why: the engine takes any registered name; tool calls and thoughts of another format pass through as text.
    Fix: write the checkpoint's parser.
    """
    known = subject.checkpoint
    if known is None:
        return
    for key, right in (("tool_call_parser", known.tool_call_parser), ("reasoning_parser", known.reasoning_parser)):
        said = subject.options.get(key)
        name = _registered(subject, key, right) if right is not None else None
        # `auto` of SGLang asks the checkpoint.
        if isinstance(said, str) and said and name is not None and said not in (name, "auto"):
            yield Finding(option_path(key), f"{known.repo} speaks as {name}, not as {said}", f"write {name}")


@vllm_rule("PRS005", "note")
def no_tool_parser(subject: LintSubject) -> Iterator[Finding]:
    """The model calls tools, and the lane does not take calls.

    Why: an agent's tool calls come back as text: it tells what it would do instead of doing it.
    Fix: add `tool_call_parser` and `enable_auto_tool_choice: true`, unless no agent uses the lane.
    """
    view, known = subject.vllm, subject.checkpoint
    if view is None or known is None or not known.tool_call_parser:
        return
    if not view.tool_call_parser and not view.enable_auto_tool_choice:
        message = "tool calls will come back as text: there is no tool_call_parser"
        hint = f"add `tool_call_parser: {known.tool_call_parser}` and `enable_auto_tool_choice: true`"
        yield Finding(("engine", "options"), message, hint, of_key=True)
