"""`GET /v1/models`: the served names, and the context length that the engine really has."""

from dataclasses import dataclass
from typing import Any

from gb300serve.core.http import Http
from gb300serve.probe.answers import json_object
from gb300serve.probe.endpoint import ServerEndpoint

TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One entry: `root` is the model's path in the container, `max_model_len` is in tokens."""

    name: str
    root: str | None = None
    max_model_len: int | None = None


def models(client: Http, endpoint: ServerEndpoint) -> tuple[ServedModel, ...]:
    """What the server lists. Raises UnreachableError or UnexpectedAnswerError."""
    url = f"{endpoint.url}/v1/models"
    body = json_object(url, client.get(url, TIMEOUT, endpoint.headers))
    listed = body.get("data")
    return tuple(_model(entry) for entry in listed if _named(entry)) if isinstance(listed, list) else ()


def _named(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("id"), str)


def _model(entry: dict[str, Any]) -> ServedModel:
    root, length = entry.get("root"), entry.get("max_model_len")
    return ServedModel(
        entry["id"], root if isinstance(root, str) else None, length if isinstance(length, int) else None
    )
