"""Completion requests: parsing, the generated reply, and the bodies and events that carry it."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gb300serve.simulator.engine.settings import Settings

_SENTENCE = (
    "the machine reads its weights once and then answers from memory while the host keeps the larger tables close "
    "and every expert waits for the router to call upon it so that a long conversation stays quick and plain"
)
_WORDS = _SENTENCE.split()
_TIMES = re.compile(r"(\d{1,9})\s*[*x\u00d7]\s*(\d{1,9})")
_SUM = re.compile(r"(\d{1,9})\s*([+-])\s*(\d{1,9})")
_PERCENT = re.compile(r"(\d{1,6})\s*(?:%|percent)\s+of\s+(\d{1,9})")
_COUNT = re.compile(r"count(?:ing)?\s+from\s+(\d{1,4})\s+(?:to|up to|through)\s+(\d{1,4})", re.IGNORECASE)
_TOKEN = re.compile(r"\s*\S+")
_PROSE_WORDS = 180


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of one of the request's tools; `arguments` is JSON text."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model generates, before the token limit. `thought` is empty if it does not think."""

    thought: str
    text: str
    call: ToolCall | None = None


def tokenize(text: str) -> list[str]:
    """Simulated tokens: words with the blanks before them."""
    return _TOKEN.findall(text)


def _computed(prompt: str) -> str | None:
    if match := _PERCENT.search(prompt):
        share, whole = map(int, match.groups())
        return f"{share * whole / 100:g}"
    if match := _TIMES.search(prompt):
        return str(int(match[1]) * int(match[2]))
    if match := _COUNT.search(prompt):
        first, last = map(int, match.groups())
        return ", ".join(map(str, range(first, last + 1)))
    if match := _SUM.search(prompt):
        left, sign, right = match.groups()
        return str(int(left) + int(right) if sign == "+" else int(left) - int(right))
    return None


def generate_prose(prompt: str, words: int) -> str:
    """As many words as requested, determined by the prompt."""
    seed = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:8], "big")
    chosen = []
    for _ in range(words):
        # Knuth's MMIX generator: the same words with every version of Python.
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        chosen.append(_WORDS[(seed >> 33) % len(_WORDS)])
    return " ".join(chosen).capitalize() + "."


def _argument(name: str, schema: Mapping[str, Any], prompt: str) -> Any:
    """A value for one parameter: an allowed value, a number from the prompt, or the prompt's last capitalised word."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    numbers = re.findall(r"-?\d+(?:\.\d+)?", prompt)
    if kind in ("integer", "number"):
        number = float(numbers[0]) if numbers else 1.0
        return int(number) if kind == "integer" or number.is_integer() else number
    proper = re.findall(r"(?<![.!?] )(?<!^)\b[A-Z][\w-]+", prompt)
    return {"boolean": True, "array": [], "object": {}}.get(str(kind), proper[-1] if proper else name)


def _call(tools: Sequence[Mapping[str, Any]], prompt: str) -> ToolCall:
    """A call of the tool whose name and description share most words with the prompt."""
    words = set(re.findall(r"[a-z]{3,}", prompt.lower()))

    def shared_words(function: Mapping[str, Any]) -> int:
        description = f"{function.get('name', '')} {function.get('description', '')}".replace("_", " ").lower()
        return len(words & set(re.findall(r"[a-z]{3,}", description)))

    function = max((tool.get("function", {}) for tool in tools), key=shared_words)
    schema = function.get("parameters") or {}
    properties = schema.get("properties") or {}
    wanted = schema.get("required") or list(properties)
    arguments = {name: _argument(name, properties.get(name, {}), prompt) for name in wanted}
    return ToolCall(str(function.get("name", "")), json.dumps(arguments, ensure_ascii=False))


def compose_reply(
    prompt: str,
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    thinks: bool = False,
    schema: Mapping[str, Any] | None = None,
) -> Reply:
    """The reply to the last message; if there are tools, it calls one; with a JSON schema, it is JSON."""
    thought = "The question is short; answer it plainly." if thinks else ""
    if tools:
        return Reply(thought, "", _call(tools, prompt))
    computed = _computed(prompt)
    if schema is not None:
        return Reply(thought, json.dumps(_structured(schema, f"{computed or ''} {prompt}"), ensure_ascii=False))
    return Reply(thought, computed or generate_prose(prompt, _PROSE_WORDS))


def _structured(schema: Mapping[str, Any], prompt: str) -> Any:
    """An object with the properties of the schema, filled as the arguments of a tool."""
    properties = schema.get("properties") or {}
    return {name: _argument(name, _mapping(inner), prompt) for name, inner in properties.items()}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


# The model's markup: a word between two full-width bars.
_MARK = "\uff5cDSML\uff5c"


def tool_call_markup(call: ToolCall) -> str:
    """A call as the model writes it, which a client receives when no parser reads it."""
    lines = [f"<{_MARK}function_calls>", f'<{_MARK}invoke name="{call.name}">']
    for name, value in json.loads(call.arguments).items():
        text = value if isinstance(value, str) else json.dumps(value)
        string = str(isinstance(value, str)).lower()
        lines.append(f'<{_MARK}parameter name="{name}" string="{string}">{text}</{_MARK}parameter>')
    return "\n".join([*lines, f"</{_MARK}invoke>", f"</{_MARK}function_calls>"])


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
    """A request for a completion of at most `max_tokens`."""

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
    schema: Mapping[str, Any] | None = None
    """The JSON schema that the answer must follow; {} for any JSON object."""


def parse_body(body: bytes) -> Mapping[str, Any]:
    """The JSON object of a request; RequestRefusedError (400) for anything else."""
    try:
        content = json.loads(body)
    except ValueError as error:
        raise RequestRefusedError(400, f"[{{'type': 'json_invalid', 'msg': 'JSON decode error: {error}'}}]") from error
    if not isinstance(content, dict):
        raise RequestRefusedError(400, "[{'type': 'model_attributes_type', 'loc': ('body',)}]")
    return content


def _model(content: Mapping[str, Any], settings: Settings, *, checks_model: bool) -> str:
    name = content.get("model") or settings.served_names[0]
    if checks_model and name not in settings.served_names:
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
    """The text of the last message, and the number of tokens of the whole prompt."""
    if not chat:
        prompt = content.get("prompt")
        if not isinstance(prompt, str) or not prompt:
            raise RequestRefusedError(400, "Either prompt or prompt_embeds must be provided and non-empty.")
        return prompt, len(tokenize(prompt))
    messages = content.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(item, dict) for item in messages):
        message = "[{'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required'}]"
        raise RequestRefusedError(400, message, param="messages")
    texts = [_text(item.get("content")) for item in messages]
    tools = json.dumps(content.get("tools") or "")
    return texts[-1], _TEMPLATE_TOKENS + sum(len(tokenize(text)) for text in (*texts, tools))


def _tools(content: Mapping[str, Any], settings: Settings) -> Sequence[Mapping[str, Any]]:
    tools, choice = content.get("tools") or (), content.get("tool_choice")
    is_enabled = settings.options.get("enable_auto_tool_choice") and settings.options.get("tool_call_parser")
    if tools and choice == "auto" and not is_enabled:
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
    template = _mapping(content.get("chat_template_kwargs"))
    wanted = template.get("thinking", True) and template.get("enable_thinking", True)
    # A launch with a parser is that of a model that thinks.
    thinks = settings.checkpoint.thinking or settings.options.get("reasoning_parser")
    return bool(thinks and wanted and effort != "none")


def _budget(content: Mapping[str, Any], used: int, settings: Settings) -> int:
    longest = settings.max_model_len
    limit = content.get("max_completion_tokens") or content.get("max_tokens")
    if limit is None:
        limit = max(longest - used, 0)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise RequestRefusedError(400, f"max_tokens must be at least 1, got {limit}.", param="max_tokens")
    if used + limit > longest:
        message = (
            f"This model's maximum context length is {longest} tokens. However, you requested {limit} output "
            f"tokens and your prompt contains at least {used} input tokens, for a total of at least {used + limit} "
            "tokens. Please reduce the length of the input prompt or the number of requested output tokens."
        )
        raise RequestRefusedError(400, message, param="max_tokens")
    return limit


def parse_request(body: bytes, settings: Settings, *, chat: bool, checks_model: bool) -> CompletionRequest:
    """Parse a completion request; RequestRefusedError if the engine refuses it."""
    content = parse_body(body)
    model = _model(content, settings, checks_model=checks_model)
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
        schema=_schema(content.get("response_format")),
    )


def _schema(response_format: Any) -> Mapping[str, Any] | None:
    wanted = _mapping(response_format)
    if wanted.get("type") == "json_schema":
        return _mapping(_mapping(wanted.get("json_schema")).get("schema"))
    return {} if wanted.get("type") == "json_object" else None


@dataclass(frozen=True, slots=True)
class SimulatedCompletion:
    """What is sent back. `thought` and `text` are tokens; `call` is a call that a parser recognised."""

    thought: tuple[str, ...]
    text: tuple[str, ...]
    call: ToolCall | None
    finish_reason: str

    @property
    def completion_tokens(self) -> int:
        return len(self.thought) + len(self.text) + (len(tokenize(tool_call_markup(self.call))) if self.call else 0)


def _parsed_reply(reply: Reply, settings: Settings) -> tuple[str, str, ToolCall | None]:
    """Thought, text and call as this launch's parsers separate them; without a parser, they stay in the text."""
    checkpoint, options = settings.checkpoint, settings.options
    parser = options.get("tool_call_parser")
    is_recognised = parser is not None and checkpoint.tool_call_parser in (None, parser)
    text = tool_call_markup(reply.call) if reply.call and not is_recognised else reply.text
    call = reply.call if is_recognised else None
    if reply.thought and not options.get("reasoning_parser"):
        return "", f"<think>{reply.thought}</think>{text}", call
    return reply.thought, text, call


def complete(request: CompletionRequest, settings: Settings) -> SimulatedCompletion:
    """The reply within the request's token limit: the thought comes first and may leave no tokens for the text."""
    reply = compose_reply(request.prompt, request.tools, thinks=request.thinks, schema=request.schema)
    thought, text, call = _parsed_reply(reply, settings)
    if request.ignore_eos and call is None:
        text = f"{text} {generate_prose(request.prompt, request.max_tokens)}"
    thought_tokens = tokenize(thought)[: request.max_tokens]
    text_tokens = tokenize(text)[: request.max_tokens - len(thought_tokens)]
    cut = len(thought_tokens) + len(text_tokens) < len(tokenize(thought)) + len(tokenize(text))
    if call is not None and (cut or len(thought_tokens) + len(tokenize(tool_call_markup(call))) > request.max_tokens):
        call, cut = None, True
    reason = "length" if cut else "tool_calls" if call else "stop"
    return SimulatedCompletion(tuple(thought_tokens), tuple(text_tokens), call, reason)


def _token_usage(request: CompletionRequest, completion: SimulatedCompletion) -> Mapping[str, Any]:
    used, made = request.prompt_tokens, completion.completion_tokens
    tokens = {"prompt_tokens": used, "total_tokens": used + made, "completion_tokens": made}
    return {**tokens, "prompt_tokens_details": None}


def _calls(call: ToolCall, identifier: str) -> list[dict[str, Any]]:
    function = {"name": call.name, "arguments": call.arguments}
    return [{"id": f"chatcmpl-tool-{identifier}", "type": "function", "function": function}]


def _head(request: CompletionRequest, identifier: str, created: int, kind: str) -> dict[str, Any]:
    names = (f"chatcmpl-{identifier}", kind) if request.chat else (f"cmpl-{identifier}", "text_completion")
    return {"id": names[0], "object": names[1], "created": created, "model": request.model}


def response_body(
    request: CompletionRequest, completion: SimulatedCompletion, identifier: str, created: int, thought_key: str
) -> dict[str, Any]:
    """The answer as one object; `thought_key` is the engine's key for the model's reasoning."""
    text = "".join(completion.text)
    finish = {"logprobs": None, "finish_reason": completion.finish_reason, "stop_reason": None}
    choice: dict[str, Any] = {"index": 0, **finish}
    if request.chat:
        choice["message"] = {
            "role": "assistant",
            "content": text or None,
            "refusal": None,
            "tool_calls": _calls(completion.call, identifier) if completion.call else [],
            thought_key: "".join(completion.thought) or None,
        }
    else:
        choice["text"] = text
    head = _head(request, identifier, created, "chat.completion")
    return {**head, "choices": [choice], "usage": _token_usage(request, completion)}


def _deltas(
    request: CompletionRequest, completion: SimulatedCompletion, identifier: str, thought_key: str
) -> Iterator[dict[str, Any]]:
    if not request.chat:
        yield from ({"text": token} for token in completion.text)
        return
    yield {"delta": {"role": "assistant", "content": ""}}
    yield from ({"delta": {thought_key: token}} for token in completion.thought)
    yield from ({"delta": {"content": token}} for token in completion.text)
    if completion.call:
        yield {"delta": {"tool_calls": [{"index": 0, **_calls(completion.call, identifier)[0]}]}}


def stream_chunks(
    request: CompletionRequest, completion: SimulatedCompletion, identifier: str, created: int, thought_key: str
) -> Iterator[str]:
    """The answer as server-sent events: one delta per token, the finish reason, the usage if requested, `[DONE]`."""
    head = _head(request, identifier, created, "chat.completion.chunk")
    for delta in _deltas(request, completion, identifier, thought_key):
        yield json.dumps({**head, "choices": [{"index": 0, **delta, "logprobs": None, "finish_reason": None}]})
    last: dict[str, Any] = {"delta": {}} if request.chat else {"text": ""}
    last |= {"logprobs": None, "finish_reason": completion.finish_reason}
    yield json.dumps({**head, "choices": [{"index": 0, **last}]})
    if request.stream_usage:
        yield json.dumps({**head, "choices": [], "usage": _token_usage(request, completion)})
    yield "[DONE]"
