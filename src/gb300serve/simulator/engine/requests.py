"""The answer to a completion: pieces in the order in which they are generated, and the bodies that carry them."""

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
    """A call of a tool that the request offered; `arguments` is JSON text."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model has to say, before any budget. `thought` is empty when it does not think."""

    thought: str
    text: str
    call: ToolCall | None = None


def tokenize(text: str) -> list[str]:
    """The stand-in's tokens: words with the blanks before them."""
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
    """So many words, chosen by the prompt."""
    seed = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:8], "big")
    chosen = []
    for _ in range(words):
        # Knuth's MMIX generator: the same words on every machine, whatever Python's own does.
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        chosen.append(_WORDS[(seed >> 33) % len(_WORDS)])
    return " ".join(chosen).capitalize() + "."


def _argument(name: str, schema: Mapping[str, Any], prompt: str) -> Any:
    """A value for one parameter: an allowed one, a number of the prompt, else the prompt's last capitalised word."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    numbers = re.findall(r"-?\d+(?:\.\d+)?", prompt)
    if kind in ("integer", "number"):
        found = float(numbers[0]) if numbers else 1.0
        return int(found) if kind == "integer" or found.is_integer() else found
    if kind == "boolean":
        return True
    if kind == "array":
        return []
    if kind == "object":
        return {}
    proper = re.findall(r"(?<![.!?] )(?<!^)\b[A-Z][\w-]+", prompt)
    return proper[-1] if proper else name


def _call(tools: Sequence[Mapping[str, Any]], prompt: str) -> ToolCall:
    """The tool whose name and description share most words with the prompt."""
    asked = set(re.findall(r"[a-z]{3,}", prompt.lower()))

    def alike(function: Mapping[str, Any]) -> int:
        said = f"{function.get('name', '')} {function.get('description', '')}".replace("_", " ").lower()
        return len(asked & set(re.findall(r"[a-z]{3,}", said)))

    function = max((tool.get("function", {}) for tool in tools), key=alike)
    schema = function.get("parameters") or {}
    properties = schema.get("properties") or {}
    wanted = schema.get("required") or list(properties)
    arguments = {name: _argument(name, properties.get(name, {}), prompt) for name in wanted}
    return ToolCall(str(function.get("name", "")), json.dumps(arguments, ensure_ascii=False))


def compose_reply(prompt: str, tools: Sequence[Mapping[str, Any]] = (), *, thinks: bool = False) -> Reply:
    """The answer to the last message; with tools on offer it calls one."""
    thought = "The question is short; answer it plainly." if thinks else ""
    if tools:
        return Reply(thought, "", _call(tools, prompt))
    return Reply(thought, _computed(prompt) or generate_prose(prompt, _PROSE_WORDS))


# The model's own markup: a word between two full-width bars.
_MARK = "\uff5cDSML\uff5c"


def tool_call_markup(call: ToolCall) -> str:
    """A call as the model writes it: what a client sees when no parser takes it apart."""
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


def parse_body(body: bytes) -> Mapping[str, Any]:
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
        return prompt, len(tokenize(prompt))
    messages = content.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(item, dict) for item in messages):
        message = "[{'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required'}]"
        raise RequestRefusedError(400, message, param="messages")
    said = [_text(item.get("content")) for item in messages]
    tools = json.dumps(content.get("tools") or "")
    return said[-1], _TEMPLATE_TOKENS + sum(len(tokenize(text)) for text in (*said, tools))


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


def parse_request(body: bytes, settings: Settings, *, chat: bool) -> CompletionRequest:
    """What a completion request asks; RequestRefusedError where the engine refuses it."""
    content = parse_body(body)
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


# vLLM's name for what the model thinks.
THOUGHT = "reasoning"


@dataclass(frozen=True, slots=True)
class SimulatedCompletion:
    """What is sent back. `thought` and `text` are tokens; a call that a parser understood is in `call`."""

    thought: tuple[str, ...]
    text: tuple[str, ...]
    call: ToolCall | None
    finish_reason: str

    @property
    def completion_tokens(self) -> int:
        return len(self.thought) + len(self.text) + (len(tokenize(tool_call_markup(self.call))) if self.call else 0)


def _written(said: Reply, settings: Settings) -> tuple[str, str, ToolCall | None]:
    """Thought, text and call as this launch's parsers split them; without its parser each is plain text."""
    checkpoint, options = settings.checkpoint, settings.options
    parser = options.get("tool_call_parser")
    understood = parser is not None and checkpoint.tool_call_parser in (None, parser)
    text = tool_call_markup(said.call) if said.call and not understood else said.text
    if said.thought and not options.get("reasoning_parser"):
        return "", f"<think>{said.thought}</think>{text}", said.call if understood else None
    return said.thought, text, said.call if understood else None


def complete(request: CompletionRequest, settings: Settings) -> SimulatedCompletion:
    """The model's reply within the request's budget: thinking is paid first, and may leave nothing for the text."""
    said = compose_reply(request.prompt, request.tools, thinks=request.thinks)
    thought, text, call = _written(said, settings)
    if request.ignore_eos and call is None:
        text = f"{text} {generate_prose(request.prompt, request.max_tokens)}"
    thinking = tokenize(thought)[: request.max_tokens]
    spoken = tokenize(text)[: request.max_tokens - len(thinking)]
    cut = len(thinking) + len(spoken) < len(tokenize(thought)) + len(tokenize(text))
    if call is not None and (cut or len(thinking) + len(tokenize(tool_call_markup(call))) > request.max_tokens):
        call, cut = None, True
    reason = "length" if cut else "tool_calls" if call else "stop"
    return SimulatedCompletion(tuple(thinking), tuple(spoken), call, reason)


def token_usage(request: CompletionRequest, given: SimulatedCompletion) -> Mapping[str, Any]:
    """The token counts of a request."""
    made = given.completion_tokens
    return {
        "prompt_tokens": request.prompt_tokens,
        "total_tokens": request.prompt_tokens + made,
        "completion_tokens": made,
        "prompt_tokens_details": None,
    }


def _calls(call: ToolCall, identifier: str) -> list[dict[str, Any]]:
    function = {"name": call.name, "arguments": call.arguments}
    return [{"id": f"chatcmpl-tool-{identifier}", "type": "function", "function": function}]


def response_body(
    request: CompletionRequest, given: SimulatedCompletion, identifier: str, created: int, thought: str = THOUGHT
) -> dict[str, Any]:
    """The whole answer as one object; `thought` is the engine's name for what the model thinks."""
    text = "".join(given.text)
    choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": given.finish_reason, "stop_reason": None}
    if request.chat:
        choice["message"] = {
            "role": "assistant",
            "content": text or None,
            "refusal": None,
            "tool_calls": _calls(given.call, identifier) if given.call else [],
            thought: "".join(given.thought) or None,
        }
    else:
        choice["text"] = text
    return {
        "id": f"{'chatcmpl' if request.chat else 'cmpl'}-{identifier}",
        "object": "chat.completion" if request.chat else "text_completion",
        "created": created,
        "model": request.model,
        "choices": [choice],
        "usage": token_usage(request, given),
    }


def _deltas(
    request: CompletionRequest, given: SimulatedCompletion, identifier: str, thought: str
) -> Iterator[dict[str, Any]]:
    if not request.chat:
        yield from ({"text": token} for token in given.text)
        return
    yield {"delta": {"role": "assistant", "content": ""}}
    yield from ({"delta": {thought: token}} for token in given.thought)
    yield from ({"delta": {"content": token}} for token in given.text)
    if given.call:
        yield {"delta": {"tool_calls": [{"index": 0, **_calls(given.call, identifier)[0]}]}}


def stream_chunks(
    request: CompletionRequest, given: SimulatedCompletion, identifier: str, created: int, thought: str = THOUGHT
) -> Iterator[str]:
    """The answer as server-sent events, one a token: the deltas, how it ended, the usage if asked for, `[DONE]`."""
    head = {
        "id": f"{'chatcmpl' if request.chat else 'cmpl'}-{identifier}",
        "object": "chat.completion.chunk" if request.chat else "text_completion",
        "created": created,
        "model": request.model,
    }
    for delta in _deltas(request, given, identifier, thought):
        yield json.dumps({**head, "choices": [{"index": 0, **delta, "logprobs": None, "finish_reason": None}]})
    last: dict[str, Any] = {"delta": {}} if request.chat else {"text": ""}
    yield json.dumps(
        {**head, "choices": [{"index": 0, **last, "logprobs": None, "finish_reason": given.finish_reason}]}
    )
    if request.stream_usage:
        yield json.dumps({**head, "choices": [], "usage": token_usage(request, given)})
    yield "[DONE]"
