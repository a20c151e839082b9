"""`POST /v1/chat/completions`: one real answer, whatever its wording."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gb300serve.core.errors import ServiceError
from gb300serve.core.http import Http
from gb300serve.core.values import Value
from gb300serve.probe.answers import json_object
from gb300serve.probe.endpoint import ServerEndpoint

# The first request may still compile kernels; a budget of a few tokens keeps the rest short.
TIMEOUT = 120.0
MAX_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Completion:
    """What came back. With a small budget a thinking model answers with `reasoning` and no content."""

    content: str | None
    reasoning: str | None
    tokens: int | None


class EmptyCompletionError(ServiceError):
    """An answer of the right form in which the model said nothing."""

    def __init__(self, url: str, model: str) -> None:
        super().__init__(
            f"{url} completed a request to {model} without a single token",
            hint="ask it by hand, and read the engine's log: gb300serve logs",
        )


def completion(client: Http, endpoint: ServerEndpoint, model: str) -> Completion:
    """Raises UnreachableError, UnexpectedAnswerError or EmptyCompletionError."""
    url = f"{endpoint.url}/v1/chat/completions"
    response = client.post_json(url, _request(model), endpoint.headers, TIMEOUT)
    answer = _read(json_object(url, response))
    if not (answer.content or answer.reasoning or answer.tokens):
        raise EmptyCompletionError(url, model)
    return answer


def _request(model: str) -> Mapping[str, Value]:
    return {
        "model": model,
        "messages": [{"role": "user", "content": "Say ready."}],
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
        "stream": False,
    }


def _read(body: Mapping[str, Any]) -> Completion:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    message = _mapping(_mapping(first).get("message"))
    # vLLM says `reasoning`; SGLang and older releases say `reasoning_content`.
    reasoning = _text(message.get("reasoning")) or _text(message.get("reasoning_content"))
    tokens = _mapping(body.get("usage")).get("completion_tokens")
    return Completion(_text(message.get("content")), reasoning, tokens if isinstance(tokens, int) else None)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
