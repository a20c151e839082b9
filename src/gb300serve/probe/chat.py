"""Chat requests to a served model, and what comes back."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gb300serve.core.ports import Clock, Http, Response
from gb300serve.core.values import Value
from gb300serve.probe.endpoint import ServerEndpoint

PATH = "/v1/chat/completions"
# A stream of a million tokens with a header each; a server that never ends its answer is cut off here.
MOST_STREAMED = 256_000_000


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A tool call that a parser of the engine has recognised; `arguments` is JSON text."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server sent. `error` is its message unless the status is 200; `events` counts the pieces of a stream."""

    status: int
    seconds: float = 0.0
    content: str = ""
    reasoning: str = ""
    calls: tuple[CalledTool, ...] = ()
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    tokens: int | None = None
    """Generated tokens, with those of the reasoning."""
    events: int = 0
    ended: bool = True
    """Whether a stream had its final `[DONE]`."""
    error: str = ""


def ask(client: Http, clock: Clock, endpoint: ServerEndpoint, request: Mapping[str, Value], deadline: float) -> Answer:
    """Send one request; `deadline` is in seconds. Raises UnreachableError."""
    url, began = f"{endpoint.url}{PATH}", clock.now()
    if not request.get("stream"):
        response = client.post_json(url, request, endpoint.headers, deadline)
        return replace(_read(response), seconds=clock.now() - began)
    status, lines = client.stream_json(url, request, endpoint.headers, deadline)
    if status != 200:
        return replace(_read(Response(status, "\n".join(lines))), seconds=clock.now() - began)
    return replace(_gather(lines), seconds=clock.now() - began)


def _read(response: Response) -> Answer:
    try:
        body = json.loads(response.text)
    except (ValueError, RecursionError):
        body = None
    if response.status != 200 or not isinstance(body, dict):
        return Answer(response.status, error=_message(body) or response.text)
    choice = _first(body.get("choices"))
    message, usage = _mapping(choice.get("message")), _mapping(body.get("usage"))
    return Answer(
        response.status,
        content=_text(message.get("content")),
        reasoning=_reasoning(message),
        calls=tuple(_calls(message.get("tool_calls"))),
        finish_reason=_text(choice.get("finish_reason")) or None,
        prompt_tokens=_number(usage.get("prompt_tokens")),
        tokens=_number(usage.get("completion_tokens")),
    )


def _message(body: Any) -> str:
    """The text of an error: vLLM nests it, SGLang and FastAPI do not."""
    outer = _mapping(body)
    inner = _mapping(outer.get("error"))
    return _text(inner.get("message")) or _text(outer.get("message")) or _text(outer.get("detail"))


def _gather(lines: Iterator[str]) -> Answer:
    """The answer that the events of a stream carry piece by piece."""
    content, reasoning, calls, size = list[str](), list[str](), dict[int, CalledTool](), 0
    answer = Answer(200, ended=False)
    for line in lines:
        size += len(line)
        data = line.removeprefix("data:").strip()
        if not line.startswith("data:") or size > MOST_STREAMED:
            continue
        if data == "[DONE]":
            answer = replace(answer, ended=True)
            continue
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            return replace(answer, error=f"an event of the stream is not JSON: {data}")
        choice, usage = _first(_mapping(event).get("choices")), _mapping(_mapping(event).get("usage"))
        delta = _mapping(choice.get("delta"))
        content.append(_text(delta.get("content")))
        reasoning.append(_reasoning(delta))
        _add_calls(calls, delta.get("tool_calls"))
        answer = replace(
            answer,
            events=answer.events + bool(content[-1] or reasoning[-1] or delta.get("tool_calls")),
            finish_reason=_text(choice.get("finish_reason")) or answer.finish_reason,
            prompt_tokens=_number(usage.get("prompt_tokens")) or answer.prompt_tokens,
            tokens=_number(usage.get("completion_tokens")) or answer.tokens,
            error=_message(event) or answer.error,
        )
    return replace(answer, content="".join(content), reasoning="".join(reasoning), calls=tuple(calls.values()))


def _add_calls(calls: dict[int, CalledTool], pieces: Any) -> None:
    for at, piece in enumerate(pieces if isinstance(pieces, list) else ()):
        function = _mapping(_mapping(piece).get("function"))
        index = _number(_mapping(piece).get("index"))
        key = at if index is None else index
        known = calls.get(key, CalledTool("", ""))
        name, arguments = _text(function.get("name")), _text(function.get("arguments"))
        calls[key] = CalledTool(known.name or name, known.arguments + arguments)


def _calls(given: Any) -> Iterator[CalledTool]:
    for item in given if isinstance(given, list) else ():
        function = _mapping(_mapping(item).get("function"))
        yield CalledTool(_text(function.get("name")), _text(function.get("arguments")))


def _reasoning(message: Mapping[str, Any]) -> str:
    """`reasoning_content` in SGLang and in older releases of vLLM."""
    return _text(message.get("reasoning")) or _text(message.get("reasoning_content"))


def _first(value: Any) -> Mapping[str, Any]:
    return _mapping(value[0]) if isinstance(value, list) and value else {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
