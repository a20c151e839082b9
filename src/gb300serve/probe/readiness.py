"""Ready or not, and why not: the served name is listed, the server is ours, one completion came back."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from gb300serve.core.http import Http, UnreachableError
from gb300serve.probe.answers import UnexpectedAnswerError
from gb300serve.probe.completion import EmptyCompletionError, completion
from gb300serve.probe.endpoint import ServerEndpoint
from gb300serve.probe.identity import Identity, identity
from gb300serve.probe.metrics import Metrics, metrics
from gb300serve.probe.models import ServedModel, models

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
