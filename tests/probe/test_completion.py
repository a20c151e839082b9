import json
from typing import Any

import pytest

from gb300serve.core.ports import Response
from gb300serve.probe.endpoint import ServerEndpoint, UnexpectedAnswerError
from gb300serve.probe.readiness import Completion, EmptyCompletionError, completion
from tests.support.fake_http import FixedHttp

ENDPOINT = ServerEndpoint("http://127.0.0.1:30006", "sesame")
PATH = "/v1/chat/completions"


def answered(message: Any, usage: Any = None) -> FixedHttp:
    body = {"id": "chatcmpl-1", "choices": [{"index": 0, "message": message}], "usage": usage}
    return FixedHttp({PATH: Response(200, json.dumps(body))})


def test_asks_for_a_few_tokens_with_the_key() -> None:
    client = answered({"content": "Ready."}, {"completion_tokens": 3})
    assert completion(client, ENDPOINT, "tiny") == Completion("Ready.", None, 3)
    body = {
        "model": "tiny",
        "messages": [{"role": "user", "content": "Say ready."}],
        "max_tokens": 8,
        "temperature": 0,
        "stream": False,
    }
    assert client.asked == [("POST", PATH, {"Authorization": "Bearer sesame"}, body)]


@pytest.mark.parametrize(
    ("message", "usage", "expected"),
    [
        ({"content": None, "reasoning": "The user"}, None, Completion(None, "The user", None)),
        ({"content": "", "reasoning_content": "Hm"}, {}, Completion(None, "Hm", None)),
        ({"content": "", "reasoning": None}, {"completion_tokens": 8}, Completion(None, None, 8)),
    ],
)
def test_any_token_counts(message: Any, usage: Any, expected: Completion) -> None:
    assert completion(answered(message, usage), ENDPOINT, "tiny") == expected


@pytest.mark.parametrize("message", [{"content": ""}, {}, None, "text"])
def test_silence_of_the_model_is_an_error(message: Any) -> None:
    with pytest.raises(EmptyCompletionError, match="completed a request to tiny without a single token"):
        completion(answered(message, {"completion_tokens": 0}), ENDPOINT, "tiny")


def test_no_choices_is_an_error() -> None:
    with pytest.raises(EmptyCompletionError):
        completion(FixedHttp({PATH: Response(200, '{"choices": []}')}), ENDPOINT, "tiny")


def test_a_refusal_is_an_error() -> None:
    text = '{"error":{"message":"The model `x` does not exist. Valid aliases: tiny.","code":404}}'
    with pytest.raises(UnexpectedAnswerError, match="status 404"):
        completion(FixedHttp({PATH: Response(404, text)}), ENDPOINT, "x")
