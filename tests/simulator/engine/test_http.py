import http.client
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from gb300serve.simulator.engine.http import EngineServer, bound_socket
from gb300serve.simulator.engine.service import Service
from gb300serve.simulator.engine.settings import SimulatorEnvironment, estimate_memory
from gb300serve.simulator.engine.vllm.http import VllmHandler
from tests.support.free_port import free_port
from tests.support.simulated import V14, changed, settings

FAST = SimulatorEnvironment(speed=1e6)
STARTED = time.time()
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"required": ["city"]}}}
ASK = {"messages": [{"role": "user", "content": "What is 17*19?"}]}


class Client:
    """Speaks to one server; counts nothing, keeps nothing."""

    def __init__(self, port: int) -> None:
        self.port = port

    def __call__(self, path: str, content: object = None, key: str | None = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        body = content if isinstance(content, bytes) else json.dumps(content).encode() if content is not None else None
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def ask(self, path: str = "/v1/chat/completions", **content: Any) -> dict[str, Any]:
        status, text = self(path, {**ASK, **content})
        assert status == 200, text
        answer: dict[str, Any] = json.loads(text)
        return answer

    def refused(self, path: str = "/v1/chat/completions", **content: Any) -> tuple[int, str]:
        status, text = self(path, {**ASK, **content})
        return status, json.loads(text)["error"]["message"]


def serving(words: tuple[str, ...]) -> Iterator[Client]:
    port = free_port()
    found = settings((*words, "--port", str(port)), FAST)
    held = bound_socket(found)
    server = EngineServer(held, Service(found, estimate_memory(found), STARTED), VllmHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield Client(port)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def v14() -> Iterator[Client]:
    yield from serving(V14)


def message(answer: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = answer["choices"][0]["message"]
    return found


def test_plain_paths(v14: Client) -> None:
    assert v14("/health") == (200, "")
    assert v14("/ping") == (200, "")
    assert v14("/ping", {}) == (200, "")
    assert v14("/version") == (200, '{"version": "0.1.dev20904+g179dd0fa9"}')
    assert v14("/nothing")[0] == 404
    assert v14("/v1/completions")[0] == 405


def test_models(v14: Client) -> None:
    status, text = v14("/v1/models")
    (model,) = json.loads(text)["data"]
    assert (status, model["id"], model["root"], model["max_model_len"]) == (200, "dsv41-flash-uva", "/model", 1048576)


def test_a_completion_that_thinks(v14: Client) -> None:
    answer = v14.ask()
    assert (message(answer)["content"], bool(message(answer)["reasoning"])) == ("323", True)
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + answer["usage"]["completion_tokens"]
    quick = v14.ask(chat_template_kwargs={"thinking": False})
    assert (message(quick)["content"], message(quick)["reasoning"]) == ("323", None)


def test_a_small_budget_is_spent_on_thinking(v14: Client) -> None:
    answer = v14.ask(max_tokens=3)
    assert (message(answer)["content"], answer["choices"][0]["finish_reason"]) == (None, "length")
    assert answer["usage"]["completion_tokens"] == 3


def test_the_end_can_be_ignored(v14: Client) -> None:
    answer = v14.ask(max_tokens=64, ignore_eos=True)
    assert (answer["usage"]["completion_tokens"], answer["choices"][0]["finish_reason"]) == (64, "length")


def test_text_completions(v14: Client) -> None:
    answer = v14.ask("/v1/completions", prompt="2*21")
    assert (answer["object"], answer["choices"][0]["text"]) == ("text_completion", "42")


def test_a_stream(v14: Client) -> None:
    status, text = v14("/v1/chat/completions", {**ASK, "stream": True, "stream_options": {"include_usage": True}})
    events = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert (status, events[-1]) == (200, "[DONE]")
    chunks = [json.loads(event) for event in events[:-1]]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == "323"
    assert "".join(delta.get("reasoning") or "" for delta in deltas) == "The question is short; answer it plainly."
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["completion_tokens"]) == ([], 8)


def test_tools_are_called(v14: Client) -> None:
    answer = v14.ask(messages=[{"role": "user", "content": "Weather in Telluride?"}], tools=[WEATHER])
    (call,) = message(answer)["tool_calls"]
    assert (message(answer)["content"], answer["choices"][0]["finish_reason"]) == (None, "tool_calls")
    assert call["function"] == {"name": "get_weather", "arguments": '{"city": "Telluride"}'}
    none = v14.ask(tools=[WEATHER], tool_choice="none")
    assert (message(none)["content"], message(none)["tool_calls"]) == ("323", [])


@pytest.mark.parametrize("parser", [(), ("hermes",)])
def test_without_its_parser_a_call_is_told_as_text(parser: tuple[str, ...]) -> None:
    words = changed("--tool-call-parser", *parser)
    if not parser:
        words = tuple(word for word in words if word != "--enable-auto-tool-choice")
    for client in serving(words):
        answer = message(client.ask(tools=[WEATHER]))
        assert answer["tool_calls"] == []
        assert 'invoke name="get_weather"' in answer["content"]
        if not parser:
            assert client.refused(tools=[WEATHER], tool_choice="auto") == (
                400,
                '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            )


def test_without_its_parser_thinking_is_text() -> None:
    for client in serving(changed("--reasoning-parser")):
        answer = message(client.ask())
        assert (answer["reasoning"], answer["content"]) == (
            None,
            "<think>The question is short; answer it plainly.</think>323",
        )


def test_refusals(v14: Client) -> None:
    assert v14.refused(model="x") == (404, "The model `x` does not exist. Valid aliases: dsv41-flash-uva.")
    status, text = v14.refused(max_tokens=1048576)
    assert (status, text.startswith("This model's maximum context length is 1048576 tokens. However,")) == (400, True)
    assert v14.refused(max_tokens=0)[0] == 400
    assert v14.refused(messages=[])[0] == 400
    assert v14.refused(messages="hello")[0] == 400
    assert v14.refused("/v1/completions", prompt="")[0] == 400
    assert v14.refused(reasoning_effort="medium")[0] == 400
    assert message(v14.ask(reasoning_effort="none"))["reasoning"] is None
    for body in (b"{", b"[]", b"\xff"):
        assert v14("/v1/chat/completions", body)[0] == 400


def test_keys_guard_only_the_api() -> None:
    for client in serving((*V14, "--api-key", "one", "two")):
        assert client("/health")[0] == 200
        assert client("/metrics")[0] == 200
        assert client("/v1/models") == (401, '{"error": "Unauthorized"}')
        assert [client("/v1/models", key=key)[0] for key in ("one", "two", "three")] == [200, 200, 401]


def test_metrics_count_what_was_served(v14: Client) -> None:
    before = v14("/metrics")[1]
    answers = [v14.ask(max_tokens=100, ignore_eos=True) for _ in range(2)]
    after = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in v14("/metrics")[1].splitlines()
             if not line.startswith("#")}  # fmt: skip
    labels = '{engine="0",model_name="dsv41-flash-uva"}'
    assert f"vllm:generation_tokens_total{labels} 0.0" in before
    assert f"process_start_time_seconds {STARTED!r}" in before
    assert after[f"vllm:generation_tokens_total{labels}"] == 200
    prompts = sum(answer["usage"]["prompt_tokens"] for answer in answers)
    assert after[f"vllm:prompt_tokens_total{labels}"] == prompts
    assert after['vllm:request_success_total{engine="0",model_name="dsv41-flash-uva",finished_reason="length"}'] == 2
    assert after[f"vllm:num_requests_running{labels}"] == 0
    drafts = after[f"vllm:spec_decode_num_drafts_total{labels}"]
    assert after[f"vllm:spec_decode_num_draft_tokens_total{labels}"] == 5 * drafts
    assert after[f"vllm:e2e_request_latency_seconds_count{labels}"] == 2
    assert 'kv_cache_size_tokens="2321223"' in before


def test_a_port_that_somebody_listens_on(v14: Client) -> None:
    with pytest.raises(OSError, match="Address already in use"):
        bound_socket(settings((*V14, "--port", str(v14.port)), FAST))
