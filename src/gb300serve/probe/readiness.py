"""Ready or not, and why not: the served name is listed, the server is ours, one completion came back."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from gb300serve.core.errors import ServiceError
from gb300serve.core.ports import Http, UnreachableError
from gb300serve.core.values import Value
from gb300serve.probe.endpoint import ServerEndpoint, UnexpectedAnswerError, json_object
from gb300serve.probe.metrics import Metrics, metrics

MODELS_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One entry: `root` is the model's path in the container, `max_model_len` is in tokens."""

    name: str
    root: str | None = None
    max_model_len: int | None = None


def models(client: Http, endpoint: ServerEndpoint) -> tuple[ServedModel, ...]:
    """What the server lists. Raises UnreachableError or UnexpectedAnswerError."""
    url = f"{endpoint.url}/v1/models"
    body = json_object(url, client.get(url, MODELS_TIMEOUT, endpoint.headers))
    listed = body.get("data")
    return tuple(_model(entry) for entry in listed if _named(entry)) if isinstance(listed, list) else ()


def _named(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("id"), str)


def _model(entry: dict[str, Any]) -> ServedModel:
    root, length = entry.get("root"), entry.get("max_model_len")
    return ServedModel(
        entry["id"], root if isinstance(root, str) else None, length if isinstance(length, int) else None
    )


# The first request may still compile kernels; a budget of a few tokens keeps the rest short.
COMPLETION_TIMEOUT = 120.0
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
    response = client.post_json(url, _request(model), endpoint.headers, COMPLETION_TIMEOUT)
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


Identity = Literal["ours", "other", "unknown"]

# The engine is the container's first process and starts with it. The kernel gives process starts against its own
# boot time, which adjustments of the clock move by seconds; a wrapper before the engine may take its time.
EARLIER = 10.0
LATER = 60.0
# /server_info asks the scheduler, which may be in the middle of a long prefill.
IDENTITY_TIMEOUT = 5.0
# Receipts of a boot's log whose figures only this start has, and the keys of those figures.
SEED = "random_seed"
TIMINGS = ("load_weight", "kv_cache_allocation", "scheduler_e2e", "tokenizer_e2e")
RECEIPTS = frozenset({"startup_timings"})
# The log gives hundredths of a second.
_ROUNDING = 0.0051


def identity(
    client: Http, endpoint: ServerEndpoint, measured: Metrics, started_at: float, told: Mapping[str, Any]
) -> Identity:
    """`started_at` is the container's start, seconds since 1970; `told` are figures of its log (RECEIPTS).

    `unknown` where the server tells neither its start nor such figures.
    """
    path = endpoint.engine.server_info
    if measured.process_start is not None or path is None or not told:
        return compare(measured.process_start, started_at)
    url = f"{endpoint.url}{path}"
    try:
        return same_start(json_object(url, client.get(url, IDENTITY_TIMEOUT, endpoint.headers)), told)
    except (UnreachableError, UnexpectedAnswerError):
        return "unknown"


def compare(process_start: float | None, started_at: float) -> Identity:
    """Both in seconds since 1970."""
    if process_start is None:
        return "unknown"
    return "ours" if started_at - EARLIER <= process_start <= started_at + LATER else "other"


def same_start(info: Mapping[str, Any], told: Mapping[str, Any]) -> Identity:
    """The figures of /server_info against those of the log; the seed counts where it tells no times."""
    spent = info.get("startup_time")
    times = spent if isinstance(spent, dict) else {}
    pairs = [(times[name], told[name]) for name in TIMINGS if name in told and isinstance(times.get(name), float | int)]
    if pairs:
        return "ours" if all(abs(one - other) < _ROUNDING for one, other in pairs) else "other"
    seed = info.get(SEED)
    if SEED not in told or not isinstance(seed, int):
        return "unknown"
    return "ours" if seed == told[SEED] else "other"


NOTHING_TOLD: Mapping[str, Any] = MappingProxyType({})

ReadinessState = Literal["silent", "refusing", "other-model", "other-server", "no-completion", "ready"]


@dataclass(frozen=True, slots=True)
class Readiness:
    """`why` says in a sentence what is missing; it is empty when ready."""

    state: ReadinessState
    why: str = ""
    model: ServedModel | None = None
    identity: Identity = "unknown"
    metrics: Metrics | None = None


def presence(
    client: Http,
    endpoint: ServerEndpoint,
    served_names: tuple[str, ...],
    started_at: float,
    told: Mapping[str, Any] = NOTHING_TOLD,
) -> Readiness:
    """Who answers, without asking for a completion: state `ready` means that the right server lists the right name.

    `told`: figures of the container's log that only its own start has (see `probe.identity`).
    """
    try:
        listed = models(client, endpoint)
    except UnreachableError as error:
        return Readiness("silent", error.message)
    except UnexpectedAnswerError as error:
        return Readiness("refusing", "; ".join(filter(None, (error.message, error.hint))))
    measured = _metrics(client, endpoint)
    return _judged(listed, served_names, measured, identity(client, endpoint, measured, started_at, told))


def completed(client: Http, endpoint: ServerEndpoint, present: Readiness) -> Readiness:
    """What `presence` found, once a completion came back; only the right server is asked for one."""
    if present.state != "ready" or present.model is None:
        return present
    try:
        completion(client, endpoint, present.model.name)
    except (UnreachableError, UnexpectedAnswerError, EmptyCompletionError) as error:
        return Readiness("no-completion", error.message, present.model, present.identity, present.metrics)
    return present


def _metrics(client: Http, endpoint: ServerEndpoint) -> Metrics:
    """An engine may serve without them (SGLang without --enable-metrics): then nothing is known, nothing is wrong."""
    try:
        return metrics(client, endpoint)
    except (UnreachableError, UnexpectedAnswerError):
        return Metrics()


def _judged(
    listed: tuple[ServedModel, ...], served_names: tuple[str, ...], measured: Metrics, whose: Identity
) -> Readiness:
    names = {model.name: model for model in listed}
    model = next((names[name] for name in served_names if name in names), None)
    if whose == "other":
        return Readiness(
            "other-server", "another server answers on this port, not the one in the container", model, whose, measured
        )
    if model is None:
        shown = ", ".join(names) or "nothing"
        return Readiness(
            "other-model", f"the server lists {shown}, not {' or '.join(served_names)}", None, whose, measured
        )
    return Readiness("ready", "", model, whose, measured)
