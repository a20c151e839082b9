"""The answer to a completion: pieces in the order in which they are generated, and the bodies that carry them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gb300serve.simulator.engine_reply import Reply, ToolCall, narrated, prose, reply, tokens
from gb300serve.simulator.engine_request import CompletionRequest
from gb300serve.simulator.engine_settings import Settings

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
        return len(self.thought) + len(self.text) + (len(tokens(narrated(self.call))) if self.call else 0)


def _written(said: Reply, settings: Settings) -> tuple[str, str, ToolCall | None]:
    """Thought, text and call as this launch's parsers split them; without its parser each is plain text."""
    checkpoint, options = settings.checkpoint, settings.options
    parser = options.get("tool_call_parser")
    understood = parser is not None and checkpoint.tool_call_parser in (None, parser)
    text = narrated(said.call) if said.call and not understood else said.text
    if said.thought and not options.get("reasoning_parser"):
        return "", f"<think>{said.thought}</think>{text}", said.call if understood else None
    return said.thought, text, said.call if understood else None


def answer(request: CompletionRequest, settings: Settings) -> SimulatedCompletion:
    """The model's reply within the request's budget: thinking is paid first, and may leave nothing for the text."""
    said = reply(request.prompt, request.tools, thinks=request.thinks)
    thought, text, call = _written(said, settings)
    if request.ignore_eos and call is None:
        text = f"{text} {prose(request.prompt, request.max_tokens)}"
    thinking = tokens(thought)[: request.max_tokens]
    spoken = tokens(text)[: request.max_tokens - len(thinking)]
    cut = len(thinking) + len(spoken) < len(tokens(thought)) + len(tokens(text))
    if call is not None and (cut or len(thinking) + len(tokens(narrated(call))) > request.max_tokens):
        call, cut = None, True
    reason = "length" if cut else "tool_calls" if call else "stop"
    return SimulatedCompletion(tuple(thinking), tuple(spoken), call, reason)


def usage(request: CompletionRequest, given: SimulatedCompletion) -> Mapping[str, Any]:
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


def body(
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
        "usage": usage(request, given),
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


def chunks(
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
        yield json.dumps({**head, "choices": [], "usage": usage(request, given)})
    yield "[DONE]"
