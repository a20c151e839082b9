"""Ready or not, and why not: the served name is listed, the server is ours, one completion came back."""

from dataclasses import dataclass
from typing import Literal

from gb300serve.core.http import Http, UnreachableError
from gb300serve.probe.answers import UnexpectedAnswerError
from gb300serve.probe.completion import EmptyCompletionError, completion
from gb300serve.probe.endpoint import Endpoint
from gb300serve.probe.identity import Identity, compare
from gb300serve.probe.metrics import Metrics, metrics
from gb300serve.probe.models import ServedModel, models

ReadinessState = Literal["silent", "refusing", "other-model", "other-server", "no-completion", "ready"]


@dataclass(frozen=True, slots=True)
class Readiness:
    """`why` says in a sentence what is missing; it is empty when ready."""

    state: ReadinessState
    why: str = ""
    model: ServedModel | None = None
    identity: Identity = "unknown"
    metrics: Metrics | None = None


def presence(client: Http, endpoint: Endpoint, served_names: tuple[str, ...], started_at: float) -> Readiness:
    """Who answers, without asking for a completion: state `ready` means that the right server lists the right name."""
    try:
        listed = models(client, endpoint)
    except UnreachableError as error:
        return Readiness("silent", error.message)
    except UnexpectedAnswerError as error:
        return Readiness("refusing", error.message)
    return _judged(listed, served_names, _metrics(client, endpoint), started_at)


def readiness(client: Http, endpoint: Endpoint, served_names: tuple[str, ...], started_at: float) -> Readiness:
    """The whole proof. `started_at` is the container's start in seconds since 1970."""
    present = presence(client, endpoint, served_names, started_at)
    if present.state != "ready" or present.model is None:
        return present
    try:
        completion(client, endpoint, present.model.name)
    except (UnreachableError, UnexpectedAnswerError, EmptyCompletionError) as error:
        return Readiness("no-completion", error.message, present.model, present.identity, present.metrics)
    return present


def _metrics(client: Http, endpoint: Endpoint) -> Metrics:
    """An engine may serve without them (SGLang without --enable-metrics): then nothing is known, nothing is wrong."""
    try:
        return metrics(client, endpoint)
    except (UnreachableError, UnexpectedAnswerError):
        return Metrics()


def _judged(
    listed: tuple[ServedModel, ...], served_names: tuple[str, ...], measured: Metrics, started_at: float
) -> Readiness:
    whose = compare(measured.process_start, started_at)
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
