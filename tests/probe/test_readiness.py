import json
from typing import Any

import pytest

from gb300serve.core.ports import Response, UnreachableError
from gb300serve.engines.sglang.engine import SGLANG
from gb300serve.probe.endpoint import Metrics, ServerEndpoint, UnexpectedResponseError
from gb300serve.probe.readiness import (
    Completion,
    EmptyCompletionError,
    Identity,
    Readiness,
    ServedModel,
    check_completion,
    check_liveness,
    check_presence,
    compare_starts,
    completion,
    identity,
    models,
)
from tests.support.fake_http import FixedHttp

ENDPOINT = ServerEndpoint("http://127.0.0.1:30006")
MODELS = Response(200, json.dumps({"data": [{"id": "tiny", "root": "/model", "max_model_len": 4096}]}))
COMPLETION = Response(200, json.dumps({"choices": [{"message": {"content": "Ready"}}]}))
OURS = Response(200, "process_start_time_seconds 1000.5\n")
OTHER = Response(200, "process_start_time_seconds 400.0\n")
TINY = ServedModel("tiny", "/model", 4096)


def judged(answers: dict[str, Response], names: tuple[str, ...] = ("tiny",)) -> Readiness:
    http = FixedHttp(answers)
    return check_completion(http, ENDPOINT, check_presence(http, ENDPOINT, names, 1000.0))


def test_ready_needs_name_identity_and_completion() -> None:
    found = judged({"/v1/models": MODELS, "/metrics": OURS, "/v1/chat/completions": COMPLETION})
    assert found == Readiness("ready", "", TINY, "ours", Metrics(process_start=1000.5))


def test_an_engine_without_metrics_can_be_ready() -> None:
    found = judged({"/v1/models": MODELS, "/v1/chat/completions": COMPLETION})
    assert found == Readiness("ready", "", TINY, "unknown", Metrics())


@pytest.mark.parametrize(
    ("answers", "state", "why"),
    [
        ({}, "silent", "http://127.0.0.1:30006/v1/models does not respond: connection refused"),
        (
            {"/v1/models": Response(401, "")},
            "refusing",
            "http://127.0.0.1:30006/v1/models returned status 401 and an empty body; "
            "the server requires a key: set container.secrets.VLLM_API_KEY or engine.options.api_key in the recipe",
        ),
        (
            {"/v1/models": MODELS, "/metrics": OTHER, "/v1/chat/completions": COMPLETION},
            "other-server",
            "another server answers on this port, not the one in the container",
        ),
        (
            {"/v1/models": MODELS, "/metrics": OURS, "/v1/chat/completions": Response(500, "dead")},
            "no-completion",
            "http://127.0.0.1:30006/v1/chat/completions returned status 500: dead",
        ),
    ],
)
def test_what_is_missing_is_said(answers: dict[str, Response], state: str, why: str) -> None:
    found = judged(answers)
    assert (found.state, found.why) == (state, why)


def test_another_model_is_named() -> None:
    found = judged({"/v1/models": MODELS, "/metrics": OURS}, ("glm", "glm-flash"))
    assert (found.state, found.why) == ("other-model", "the server lists tiny, not glm or glm-flash")


def test_presence_asks_for_no_completion() -> None:
    client = FixedHttp({"/v1/models": MODELS, "/metrics": OURS})
    assert check_presence(client, ENDPOINT, ("tiny",), 1000.0).state == "ready"
    assert [path for _, path, _, _ in client.asked] == ["/v1/models", "/metrics"]


ENDPOINT_COMPLETION = ServerEndpoint("http://127.0.0.1:30006", "sesame")
PATH = "/v1/chat/completions"


def answered(message: Any, usage: Any = None) -> FixedHttp:
    body = {"id": "chatcmpl-1", "choices": [{"index": 0, "message": message}], "usage": usage}
    return FixedHttp({PATH: Response(200, json.dumps(body))})


def test_asks_for_a_few_tokens_with_the_key() -> None:
    client = answered({"content": "Ready."}, {"completion_tokens": 3})
    assert completion(client, ENDPOINT_COMPLETION, "tiny") == Completion("Ready.", None, 3)
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
    assert completion(answered(message, usage), ENDPOINT_COMPLETION, "tiny") == expected


@pytest.mark.parametrize("message", [{"content": ""}, {}, None, "text"])
def test_silence_of_the_model_is_an_error(message: Any) -> None:
    with pytest.raises(EmptyCompletionError, match="returned a completion of tiny without a single token"):
        completion(answered(message, {"completion_tokens": 0}), ENDPOINT_COMPLETION, "tiny")


def test_no_choices_is_an_error() -> None:
    with pytest.raises(EmptyCompletionError):
        completion(FixedHttp({PATH: Response(200, '{"choices": []}')}), ENDPOINT_COMPLETION, "tiny")


def test_a_refusal_is_an_error() -> None:
    text = '{"error":{"message":"The model `x` does not exist. Valid aliases: tiny.","code":404}}'
    with pytest.raises(UnexpectedResponseError, match="status 404"):
        completion(FixedHttp({PATH: Response(404, text)}), ENDPOINT_COMPLETION, "x")


VLLM_AT = ServerEndpoint("http://127.0.0.1:1")
SGLANG_AT = ServerEndpoint("http://127.0.0.1:1", "sesame", SGLANG.probe)
TOLD = {"random_seed": 421873650, "load_weight": 61.2, "scheduler_e2e": 118.02, "tokenizer_e2e": 119.51}
INFO = {
    "random_seed": 421873650,
    "startup_time": {"load_weight": 61.2049, "scheduler_e2e": 118.0151, "tokenizer_e2e": 119.51, "cuda_graph": {}},
}


@pytest.mark.parametrize(
    ("process_start", "expected"),
    [(None, "unknown"), (989.9, "other"), (990.0, "ours"), (1000.4, "ours"), (1060.0, "ours"), (1060.1, "other")],
)
def test_the_process_starts_with_its_container(process_start: float | None, expected: Identity) -> None:
    assert compare_starts(process_start, 1000.0) == expected


def test_a_start_that_the_metrics_tell_is_enough() -> None:
    client = FixedHttp({})
    assert identity(client, VLLM_AT, Metrics(process_start=400.0), 1000.0, TOLD) == "other"
    assert identity(client, SGLANG_AT, Metrics(process_start=1001.0), 1000.0, TOLD) == "ours"
    assert identity(client, VLLM_AT, Metrics(), 1000.0, TOLD) == "unknown"
    assert client.asked == []


def test_else_the_server_is_asked_with_its_key() -> None:
    client = FixedHttp({"/server_info": Response(200, json.dumps(INFO))})
    assert identity(client, SGLANG_AT, Metrics(), 1000.0, TOLD) == "ours"
    assert client.asked == [("GET", "/server_info", {"Authorization": "Bearer sesame"}, None)]


@pytest.mark.parametrize("answers", [{}, {"/server_info": Response(404, "Not Found")}])
def test_no_answer_tells_nothing(answers: dict[str, Response]) -> None:
    assert identity(FixedHttp(answers), SGLANG_AT, Metrics(), 1000.0, TOLD) == "unknown"


def test_a_log_that_tells_nothing_asks_nothing() -> None:
    client = FixedHttp({})
    assert identity(client, SGLANG_AT, Metrics(), 1000.0, {}) == "unknown"
    assert client.asked == []


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
    with pytest.raises(UnexpectedResponseError) as caught:
        models(FixedHttp({"/v1/models": Response(200, text)}), ENDPOINT)
    assert caught.value.exit_code == 9


def test_a_missing_key_is_named() -> None:
    with pytest.raises(UnexpectedResponseError) as caught:
        models(FixedHttp({"/v1/models": Response(401, '{"error":"Unauthorized"}')}), ENDPOINT)
    assert caught.value.message == 'http://127.0.0.1:30006/v1/models returned status 401: {"error":"Unauthorized"}'
    assert caught.value.hint is not None
    assert "VLLM_API_KEY" in caught.value.hint


def test_silence_is_an_error() -> None:
    with pytest.raises(UnreachableError, match="does not respond: connection refused"):
        models(FixedHttp({}), ENDPOINT)


RUNNING = "vllm:num_requests_running 3\nvllm:num_requests_waiting 2\nvllm:generation_tokens_total {}\n"


@pytest.mark.parametrize(
    ("after", "state", "why"),
    [
        (100, "hung", "no answer within 30 s: 3 requests run and 2 wait, and not one token was generated meanwhile"),
        (2300, "busy", "no answer within 30 s: 3 requests run and 2 wait, and 2,200 tokens were generated meanwhile"),
        (None, "hung", "/metrics has no counters that show whether it works"),
    ],
)
def test_a_completion_that_never_returns_is_judged_by_the_counters(after: int | None, state: str, why: str) -> None:
    texts = iter([RUNNING.format(100), RUNNING.format(after) if after is not None else ""])

    class Silent(FixedHttp):
        def get(self, url: str, timeout: float, headers: Any = None) -> Response:
            return Response(200, next(texts))

    found = check_liveness(Silent({}), ENDPOINT, "tiny")
    assert (found.state, why in found.why) == (state, True), found.why


def test_a_server_that_completes_is_alive() -> None:
    assert check_liveness(FixedHttp({"/v1/chat/completions": COMPLETION}), ENDPOINT, "tiny").state == "alive"
    refusing = check_liveness(FixedHttp({"/v1/chat/completions": Response(500, "")}), ENDPOINT, "tiny")
    assert (refusing.state, "returned status 500" in refusing.why) == ("hung", True)
