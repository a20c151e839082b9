import json

import pytest

from gb300serve.core.ports import Response, UnreachableError
from gb300serve.probe.endpoint import ServerEndpoint, UnexpectedAnswerError
from gb300serve.probe.readiness import ServedModel, models
from tests.support.fake_http import FixedHttp

ENDPOINT = ServerEndpoint("http://127.0.0.1:30006")
ENTRY = {"id": "tiny", "object": "model", "owned_by": "vllm", "root": "/model", "parent": None, "max_model_len": 4096}


def test_lists_names_roots_and_lengths() -> None:
    body = json.dumps({"object": "list", "data": [ENTRY, {"id": "lora"}, {"object": "model"}, "odd"]})
    client = FixedHttp({"/v1/models": Response(200, body)})
    assert models(client, ENDPOINT) == (ServedModel("tiny", "/model", 4096), ServedModel("lora"))


def test_the_key_is_sent() -> None:
    client = FixedHttp({"/v1/models": Response(200, '{"data": []}')})
    assert models(client, ServerEndpoint("http://127.0.0.1:30006", "sesame")) == ()
    assert client.asked == [("GET", "/v1/models", {"Authorization": "Bearer sesame"}, None)]


def test_a_body_without_a_list_lists_nothing() -> None:
    assert models(FixedHttp({"/v1/models": Response(200, "{}")}), ENDPOINT) == ()


@pytest.mark.parametrize("text", ["", "<html>", "[1]"])
def test_what_is_no_json_object_is_an_error(text: str) -> None:
    with pytest.raises(UnexpectedAnswerError) as caught:
        models(FixedHttp({"/v1/models": Response(200, text)}), ENDPOINT)
    assert caught.value.exit_code == 9


def test_a_missing_key_is_named() -> None:
    with pytest.raises(UnexpectedAnswerError) as caught:
        models(FixedHttp({"/v1/models": Response(401, '{"error":"Unauthorized"}')}), ENDPOINT)
    assert caught.value.message == 'http://127.0.0.1:30006/v1/models answers with status 401: {"error":"Unauthorized"}'
    assert caught.value.hint is not None
    assert "VLLM_API_KEY" in caught.value.hint


def test_silence_is_an_error() -> None:
    with pytest.raises(UnreachableError, match="does not answer: connection refused"):
        models(FixedHttp({}), ENDPOINT)
