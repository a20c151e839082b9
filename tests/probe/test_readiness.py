import json

import pytest

from gb300serve.core.ports import Response
from gb300serve.probe.endpoint import ServerEndpoint
from gb300serve.probe.metrics import Metrics
from gb300serve.probe.readiness import Readiness, ServedModel, completed, presence
from tests.support.fake_http import FixedHttp

ENDPOINT = ServerEndpoint("http://127.0.0.1:30006")
MODELS = Response(200, json.dumps({"data": [{"id": "tiny", "root": "/model", "max_model_len": 4096}]}))
COMPLETION = Response(200, json.dumps({"choices": [{"message": {"content": "Ready"}}]}))
OURS = Response(200, "process_start_time_seconds 1000.5\n")
OTHER = Response(200, "process_start_time_seconds 400.0\n")
TINY = ServedModel("tiny", "/model", 4096)


def judged(answers: dict[str, Response], names: tuple[str, ...] = ("tiny",)) -> Readiness:
    http = FixedHttp(answers)
    return completed(http, ENDPOINT, presence(http, ENDPOINT, names, 1000.0))


def test_ready_needs_name_identity_and_completion() -> None:
    found = judged({"/v1/models": MODELS, "/metrics": OURS, "/v1/chat/completions": COMPLETION})
    assert found == Readiness("ready", "", TINY, "ours", Metrics(process_start=1000.5))


def test_an_engine_without_metrics_can_be_ready() -> None:
    found = judged({"/v1/models": MODELS, "/v1/chat/completions": COMPLETION})
    assert found == Readiness("ready", "", TINY, "unknown", Metrics())


@pytest.mark.parametrize(
    ("answers", "state", "why"),
    [
        ({}, "silent", "http://127.0.0.1:30006/v1/models does not answer: connection refused"),
        (
            {"/v1/models": Response(401, "")},
            "refusing",
            "http://127.0.0.1:30006/v1/models answers with status 401 and nothing else; "
            "the server wants a key: say it in the recipe, container.secrets.VLLM_API_KEY or engine.options.api_key",
        ),
        (
            {"/v1/models": MODELS, "/metrics": OTHER, "/v1/chat/completions": COMPLETION},
            "other-server",
            "another server answers on this port, not the one in the container",
        ),
        (
            {"/v1/models": MODELS, "/metrics": OURS, "/v1/chat/completions": Response(500, "dead")},
            "no-completion",
            "http://127.0.0.1:30006/v1/chat/completions answers with status 500: dead",
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
    assert presence(client, ENDPOINT, ("tiny",), 1000.0).state == "ready"
    assert [path for _, path, _, _ in client.asked] == ["/v1/models", "/metrics"]
