"""Whether a server is ready: the served name is listed, the server is ours, one completion succeeds."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from gb300serve.core.errors import Action, ServiceError
from gb300serve.core.ports import Http, UnreachableError
from gb300serve.core.values import Value
from gb300serve.probe.endpoint import Metrics, ServerEndpoint, UnexpectedResponseError, json_object, metrics

MODELS_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One entry: `root` is the model's path in the container, `max_model_len` is in tokens."""

    name: str
    root: str | None = None
    max_model_len: int | None = None


def models(client: Http, endpoint: ServerEndpoint) -> tuple[ServedModel, ...]:
    """The models that the server lists. Raises UnreachableError or UnexpectedResponseError."""
    url = f"{endpoint.url}/v1/models"
    body = json_object(url, client.get(url, MODELS_TIMEOUT, endpoint.headers))
    listed = body.get("data")
    entries = map(_mapping, listed) if isinstance(listed, list) else ()
    return tuple(_model(entry) for entry in entries if isinstance(entry.get("id"), str))


def _model(entry: Mapping[str, Any]) -> ServedModel:
    length = entry.get("max_model_len")
    return ServedModel(entry["id"], _text(entry.get("root")), length if isinstance(length, int) else None)


# The first request may still compile kernels; a small budget keeps the generation short.
COMPLETION_TIMEOUT = 120.0
MAX_TOKENS = 8


@dataclass(frozen=True, slots=True)
class Completion:
    """The response. With a small budget, a thinking model returns `reasoning` and no content."""

    content: str | None
    reasoning: str | None
    tokens: int | None


class EmptyCompletionError(ServiceError):
    """A valid response without a single token."""

    def __init__(self, url: str, model: str) -> None:
        super().__init__(
            f"{url} returned a completion of {model} without a single token",
            suggest=(Action("logs", "send a request by hand, and read the engine's log", ref=""),),
        )


def completion(client: Http, endpoint: ServerEndpoint, model: str, timeout: float = COMPLETION_TIMEOUT) -> Completion:
    """Raises UnreachableError, UnexpectedResponseError or EmptyCompletionError."""
    url = f"{endpoint.url}/v1/chat/completions"
    response = client.post_json(url, _request(model), endpoint.headers, timeout)
    result = _read(json_object(url, response))
    if not (result.content or result.reasoning or result.tokens):
        raise EmptyCompletionError(url, model)
    return result


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
    # `reasoning_content` in SGLang and in older releases of vLLM.
    reasoning = _text(message.get("reasoning")) or _text(message.get("reasoning_content"))
    tokens = _mapping(body.get("usage")).get("completion_tokens")
    return Completion(_text(message.get("content")), reasoning, tokens if isinstance(tokens, int) else None)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


Identity = Literal["ours", "other", "unknown"]

# The engine is the container's first process and starts with it. The kernel counts process starts from its own boot
# time, which clock adjustments move by seconds; a wrapper before the engine may take some time.
EARLIER = 10.0
LATER = 60.0
# The scheduler answers /server_info, and may be in the middle of a long prefill.
IDENTITY_TIMEOUT = 5.0
NO_FIGURES: Mapping[str, Any] = MappingProxyType({})


def identity(
    client: Http, endpoint: ServerEndpoint, measured: Metrics, started_at: float, figures: Mapping[str, Any]
) -> Identity:
    """`started_at` is the container's start, seconds since 1970; `figures` are from its log (ServerInfo).

    `unknown` if the server reports neither its start nor such figures.
    """
    info = endpoint.engine.server_info
    if measured.process_start is not None or info is None or not figures:
        return compare_starts(measured.process_start, started_at)
    url = f"{endpoint.url}{info.path}"
    try:
        response = json_object(url, client.get(url, IDENTITY_TIMEOUT, endpoint.headers))
    except (UnreachableError, UnexpectedResponseError):
        return "unknown"
    same = info.is_same_start(response, figures)
    return "unknown" if same is None else "ours" if same else "other"


def compare_starts(process_start: float | None, started_at: float) -> Identity:
    """Both in seconds since 1970."""
    if process_start is None:
        return "unknown"
    return "ours" if started_at - EARLIER <= process_start <= started_at + LATER else "other"


ReadinessState = Literal["silent", "refusing", "other-model", "other-server", "no-completion", "ready"]


@dataclass(frozen=True, slots=True)
class Readiness:
    """`why` is a sentence about what is missing; empty if ready."""

    state: ReadinessState
    why: str = ""
    model: ServedModel | None = None
    identity: Identity = "unknown"
    metrics: Metrics | None = None


def check_presence(
    client: Http,
    endpoint: ServerEndpoint,
    served_names: tuple[str, ...],
    started_at: float,
    figures: Mapping[str, Any] = NO_FIGURES,
) -> Readiness:
    """Which server responds, without a completion: `ready` if ours lists the right name."""
    try:
        listed = models(client, endpoint)
    except UnreachableError as error:
        return Readiness("silent", error.message)
    except UnexpectedResponseError as error:
        return Readiness("refusing", "; ".join(filter(None, (error.message, error.hint))))
    measured = _metrics(client, endpoint)
    return _readiness(listed, served_names, measured, identity(client, endpoint, measured, started_at, figures))


def check_completion(client: Http, endpoint: ServerEndpoint, presence: Readiness) -> Readiness:
    """The readiness after one completion; only the right server gets the request."""
    if presence.state != "ready" or presence.model is None:
        return presence
    try:
        completion(client, endpoint, presence.model.name)
    except (UnreachableError, UnexpectedResponseError, EmptyCompletionError) as error:
        return Readiness("no-completion", error.message, presence.model, presence.identity, presence.metrics)
    return presence


# A short completion takes a second on a busy lane. `status --check` has a minute for its verdict.
LIVENESS_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Liveness:
    """Whether a server that answers also generates. `busy`: no completion in time, but others receive tokens."""

    state: Literal["alive", "busy", "hung"]
    why: str = ""


def check_liveness(client: Http, endpoint: ServerEndpoint, model: str, timeout: float = LIVENESS_TIMEOUT) -> Liveness:
    """One short completion; if none arrives within `timeout` seconds, the counters of the server decide."""
    before = _metrics(client, endpoint)
    try:
        completion(client, endpoint, model, timeout)
    except UnreachableError:
        return _without_answer(before, _metrics(client, endpoint), timeout)
    except (UnexpectedResponseError, EmptyCompletionError) as error:
        return Liveness("hung", error.message)
    return Liveness("alive")


def _without_answer(before: Metrics, after: Metrics, timeout: float) -> Liveness:
    why = f"a short completion got no answer within {timeout:g} s"
    if before.generation_tokens is None or after.generation_tokens is None:
        return Liveness("hung", f"{why}, and /metrics has no counters that show whether it works")
    waits = f"{after.requests_running or 0:g} requests run and {after.requests_waiting or 0:g} wait"
    made = after.generation_tokens - before.generation_tokens
    if made > 0:
        return Liveness("busy", f"{why}: {waits}, and {made:,.0f} tokens were generated meanwhile")
    return Liveness("hung", f"{why}: {waits}, and not one token was generated meanwhile")


def _metrics(client: Http, endpoint: ServerEndpoint) -> Metrics:
    """Empty if the engine exports none (SGLang without --enable-metrics): that is not an error."""
    try:
        return metrics(client, endpoint)
    except (UnreachableError, UnexpectedResponseError):
        return Metrics()


def _readiness(
    listed: tuple[ServedModel, ...], served_names: tuple[str, ...], measured: Metrics, whose: Identity
) -> Readiness:
    names = {model.name: model for model in listed}
    model = next((names[name] for name in served_names if name in names), None)
    state: ReadinessState = "ready"
    why = ""
    if whose == "other":
        state, why = "other-server", "another server answers on this port, not the one in the container"
    elif model is None:
        shown = ", ".join(names) or "nothing"
        state, why = "other-model", f"the server lists {shown}, not {' or '.join(served_names)}"
    return Readiness(state, why, model, whose, measured)
