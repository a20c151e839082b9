import pytest

from gb300serve.core.ports import Response, UnreachableError
from gb300serve.engines.sglang.engine import SGLANG
from gb300serve.probe.endpoint import ServerEndpoint, UnexpectedResponseError
from gb300serve.probe.metrics import Metrics, MetricSample, metrics, samples
from tests.support.fake_http import FixedHttp

ENDPOINT = ServerEndpoint("http://127.0.0.1:30006", "key")
TEXT = """\
# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.79598180312e+09
# HELP vllm:num_requests_running Number of requests in model execution batches.
vllm:num_requests_running{engine="0",model_name="dsv41-flash-uva"} 5.0
vllm:num_requests_running{engine="1",model_name="dsv41-flash-uva"} 2.0
vllm:num_requests_waiting{engine="0",model_name="dsv41-flash-uva"} 1.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 9.0
vllm:kv_cache_usage_perc{engine="0",model_name="a \\"quoted\\", name\\n"} 0.061 1795981803000
vllm:nothing NaN
garbage line with words
"""


def test_reads_the_series_it_knows() -> None:
    client = FixedHttp({"/metrics": Response(200, TEXT)})
    assert metrics(client, ENDPOINT) == Metrics(1795981803.12, 7.0, 1.0, 0.061)
    assert client.asked == [("GET", "/metrics", {}, None)]


def test_reads_the_series_of_the_other_engine() -> None:
    text = (
        'sglang:num_running_reqs{engine_type="unified",model_name="m",tp_rank="0"} 3.0\n'
        'sglang:num_queue_reqs{engine_type="unified",model_name="m",tp_rank="0"} 1.0\n'
        'sglang:token_usage{engine_type="unified",model_name="m",tp_rank="0"} 0.25\n'
        "vllm:num_requests_running 9.0\n"
    )
    client = FixedHttp({"/metrics": Response(200, text)})
    assert metrics(client, ServerEndpoint("http://127.0.0.1:1", None, SGLANG.probe)) == Metrics(None, 3.0, 1.0, 0.25)


def test_a_series_that_is_missing_is_none() -> None:
    assert metrics(FixedHttp({"/metrics": Response(200, "up 1\n")}), ENDPOINT) == Metrics()


def test_labels_are_unescaped_and_garbage_is_passed_over() -> None:
    found = list(samples(TEXT))
    assert [sample.name for sample in found][-2:] == ["vllm:kv_cache_usage_perc", "vllm:nothing"]
    assert found[-2] == MetricSample(
        "vllm:kv_cache_usage_perc", 0.061, {"engine": "0", "model_name": 'a "quoted", name\n'}
    )
    assert len(found) == 7


def test_other_answers_are_errors() -> None:
    with pytest.raises(UnexpectedResponseError, match="returned status 404: Not Found"):
        metrics(FixedHttp({"/metrics": Response(404, "Not Found")}), ENDPOINT)
    with pytest.raises(UnreachableError):
        metrics(FixedHttp({}), ENDPOINT)
