import json

import pytest

from gb300serve.core.ports import Response
from gb300serve.probe.endpoint import SGLANG, ServerEndpoint
from gb300serve.probe.metrics import Metrics
from gb300serve.probe.readiness import Identity, compare, identity, same_start
from tests.support.fake_http import FixedHttp

VLLM_AT = ServerEndpoint("http://127.0.0.1:1")
SGLANG_AT = ServerEndpoint("http://127.0.0.1:1", "sesame", SGLANG)
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
    assert compare(process_start, 1000.0) == expected


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


@pytest.mark.parametrize(
    ("info", "told", "expected"),
    [
        (INFO, TOLD, "ours"),
        ({**INFO, "startup_time": {"load_weight": 61.2, "scheduler_e2e": 118.03}}, TOLD, "other"),
        # A seed that a recipe sets is that of every start: the times decide where there are any.
        ({**INFO, "startup_time": {"load_weight": 60.0}}, TOLD, "other"),
        ({"random_seed": 421873650}, TOLD, "ours"),
        ({"random_seed": 7, "startup_time": None}, TOLD, "other"),
        ({"random_seed": 7}, {"load_weight": 61.2}, "unknown"),
        ({"random_seed": None}, TOLD, "unknown"),
    ],
)
def test_figures_of_one_start(info: dict[str, object], told: dict[str, float], expected: Identity) -> None:
    assert same_start(info, told) == expected
