"""Answers of a server, checked for status and form before anything is read from them."""

import json
from collections.abc import Mapping
from typing import Any

from gb300serve.core.errors import ServiceError
from gb300serve.core.http import Response
from gb300serve.core.text import printable

_EXCERPT = 200


class UnexpectedAnswerError(ServiceError):
    """An answer whose status or form is not what the engine's API promises."""

    def __init__(self, url: str, response: Response) -> None:
        text = " ".join(printable(response.text).split())
        excerpt = text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…"
        said = f": {excerpt}" if excerpt else " and nothing else"
        super().__init__(f"{url} answers with status {response.status}{said}", hint=_hint(response.status))
        self.status = response.status


def json_object(url: str, response: Response) -> Mapping[str, Any]:
    """The JSON object of an answer with status 200; raises UnexpectedAnswerError for any other answer."""
    if response.status != 200:
        raise UnexpectedAnswerError(url, response)
    try:
        body = json.loads(response.text)
    except ValueError:
        raise UnexpectedAnswerError(url, response) from None
    if not isinstance(body, dict):
        raise UnexpectedAnswerError(url, response)
    return body


def _hint(status: int) -> str | None:
    if status == 401:
        return "the server wants a key: say it in the recipe, container.secrets.VLLM_API_KEY or engine.options.api_key"
    return None
