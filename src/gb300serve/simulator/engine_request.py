"""A request to the stand-in, read and checked: what is asked, or the engine's own refusal."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gb300serve.simulator.engine_reply import tokens
from gb300serve.simulator.engine_settings import Settings

EFFORTS = ("low", "high", "xhigh", "max", "none")
_TEMPLATE_TOKENS = 8


class RequestRefusedError(Exception):
    """The engine answers with this status and message."""

    def __init__(self, status: int, message: str, kind: str = "BadRequestError", param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": status}}


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """A completion that was asked for. `max_tokens` is what may come back at most."""

    chat: bool
    model: str
    prompt: str
    prompt_tokens: int
    max_tokens: int
    tools: Sequence[Mapping[str, Any]]
    thinks: bool
    stream: bool
    stream_usage: bool
    ignore_eos: bool


def parsed(body: bytes) -> Mapping[str, Any]:
    """The JSON object of a request; 400 otherwise."""
    try:
        content = json.loads(body)
    except ValueError as error:
        raise RequestRefusedError(400, f"[{{'type': 'json_invalid', 'msg': 'JSON decode error: {error}'}}]") from error
    if not isinstance(content, dict):
        raise RequestRefusedError(400, "[{'type': 'model_attributes_type', 'loc': ('body',)}]")
    return content


def _model(content: Mapping[str, Any], settings: Settings) -> str:
    name = content.get("model") or settings.served_names[0]
    # SGLang looks at no name: it has one model.
    if name not in settings.served_names and settings.surroundings.engine == "vllm":
        known = ", ".join(settings.served_names)
        message = f"The model `{name}` does not exist. Valid aliases: {known}."
        raise RequestRefusedError(404, message, "NotFoundError", "model")
    return str(name)


def _text(content: Any) -> str:
    """A message's content: text, or the text parts of a list."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return " ".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def _prompt(content: Mapping[str, Any], *, chat: bool) -> tuple[str, int]:
    """The last thing said, and the tokens of everything said."""
    if not chat:
        prompt = content.get("prompt")
        if not isinstance(prompt, str) or not prompt:
            raise RequestRefusedError(400, "Either prompt or prompt_embeds must be provided and non-empty.")
        return prompt, len(tokens(prompt))
    messages = content.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(item, dict) for item in messages):
        message = "[{'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required'}]"
        raise RequestRefusedError(400, message, param="messages")
    said = [_text(item.get("content")) for item in messages]
    tools = json.dumps(content.get("tools") or "")
    return said[-1], _TEMPLATE_TOKENS + sum(len(tokens(text)) for text in (*said, tools))


def _tools(content: Mapping[str, Any], settings: Settings) -> Sequence[Mapping[str, Any]]:
    tools = content.get("tools") or ()
    options = settings.options
    served = options.get("enable_auto_tool_choice") and options.get("tool_call_parser")
    choice = content.get("tool_choice")
    if tools and choice == "auto" and not served:
        message = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
        raise RequestRefusedError(400, message)
    return () if choice == "none" else tuple(tools)


def _thinks(content: Mapping[str, Any], settings: Settings) -> bool:
    effort = content.get("reasoning_effort")
    if effort is not None and effort not in EFFORTS and settings.checkpoint.thinking:
        message = (
            "DeepSeek V4.1 reasoning_effort must be low, high, xhigh, max, or an integer within [1, 100] in "
            "chat_template_kwargs"
        )
        raise RequestRefusedError(400, message)
    template = content.get("chat_template_kwargs")
    wanted = template.get("thinking", True) if isinstance(template, dict) else True
    return bool(settings.checkpoint.thinking and wanted and effort != "none")


def _budget(content: Mapping[str, Any], used: int, settings: Settings) -> int:
    longest = settings.max_model_len
    asked = content.get("max_completion_tokens") or content.get("max_tokens")
    if asked is None:
        asked = max(longest - used, 0)
    if not isinstance(asked, int) or isinstance(asked, bool) or asked < 1 or used + asked > longest:
        if isinstance(asked, int) and asked >= 1:
            total = used + asked
            message = (
                f"This model's maximum context length is {longest} tokens. However, you requested {asked} output "
                f"tokens and your prompt contains at least {used} input tokens, for a total of at least {total} "
                "tokens. Please reduce the length of the input prompt or the number of requested output tokens."
            )
        else:
            message = f"max_tokens must be at least 1, got {asked}."
        raise RequestRefusedError(400, message, param="max_tokens")
    return asked


def asked(body: bytes, settings: Settings, *, chat: bool) -> CompletionRequest:
    """What a completion request asks; RequestRefusedError where the engine refuses it."""
    content = parsed(body)
    model = _model(content, settings)
    prompt, used = _prompt(content, chat=chat)
    options = content.get("stream_options")
    return CompletionRequest(
        chat=chat,
        model=model,
        prompt=prompt,
        prompt_tokens=used,
        max_tokens=_budget(content, used, settings),
        tools=_tools(content, settings) if chat else (),
        thinks=chat and _thinks(content, settings),
        stream=bool(content.get("stream")),
        stream_usage=bool(options.get("include_usage")) if isinstance(options, dict) else False,
        ignore_eos=bool(content.get("ignore_eos")),
    )
