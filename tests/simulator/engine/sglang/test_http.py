import json
import threading
from collections.abc import Iterator

import pytest

from gb300serve.adapters.http import HttpClient
from gb300serve.core.ports import Http
from gb300serve.core.values import Value
from gb300serve.engines.sglang.engine import SGLANG
from gb300serve.probe.endpoint import Metrics, ServerEndpoint, health, metrics
from gb300serve.probe.readiness import check_completion, check_presence
from gb300serve.simulator.engine.http import EngineServer, bound_socket
from gb300serve.simulator.engine.service import Service
from gb300serve.simulator.engine.settings import SimulatorEnvironment, estimate_memory
from gb300serve.simulator.engine.sglang.boot import random_seed, startup_times
from gb300serve.simulator.engine.sglang.http import SglangHandler
from tests.support.free_port import free_port
from tests.support.sglang import WORDS, settings
from tests.support.simulated import STARTED

FAST = SimulatorEnvironment(speed=1e6, version="0.5.23", model="", engine="sglang")
NAMES = ("glm-5.3-flash",)


def serving(*more: str, key: str | None = None) -> Iterator[ServerEndpoint]:
    port = free_port()
    keyed = ("--api-key", key) if key else ()
    found = settings((*WORDS, *more, *keyed, "--port", str(port)), FAST)
    server = EngineServer(bound_socket(found), Service(found, estimate_memory(found), STARTED), SglangHandler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield ServerEndpoint(f"http://127.0.0.1:{port}", key, SGLANG.probe)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def at() -> Iterator[ServerEndpoint]:
    yield from serving()


@pytest.fixture
def keyed() -> Iterator[ServerEndpoint]:
    yield from serving("--enable-metrics", key="sesame")


@pytest.fixture
def client() -> Iterator[Http]:
    found = HttpClient()
    yield found
    found.close()


TOLD = {
    "random_seed": random_seed(settings(), STARTED),
    "tokenizer_e2e": startup_times(settings(), STARTED)["tokenizer_e2e"],
}


def test_the_probe_knows_it_by_its_log(client: Http, at: ServerEndpoint) -> None:
    found = check_completion(client, at, check_presence(client, at, NAMES, STARTED, TOLD))
    assert (found.state, found.identity, found.metrics) == ("ready", "ours", Metrics())
    assert found.model is not None
    assert (found.model.root, found.model.max_model_len) == ("glm-5.3-flash", 1048576)


def test_another_start_is_another_server(client: Http, at: ServerEndpoint) -> None:
    assert check_presence(client, at, NAMES, STARTED, {**TOLD, "tokenizer_e2e": 1.0}).state == "other-server"
    assert check_presence(client, at, NAMES, STARTED).identity == "unknown"


def test_the_key_guards_all_but_health_and_metrics(client: Http, keyed: ServerEndpoint) -> None:
    bare = ServerEndpoint(keyed.url, None, SGLANG.probe)
    assert [client.get(bare.url + path, 5.0).status for path in ("/v1/models", "/server_info", "/model_info")] == [
        401,
        401,
        401,
    ]
    assert health(client, bare) == 200
    assert metrics(client, bare) == Metrics(None, 0.0, 0.0, 0.0, 0.0)
    assert check_presence(client, keyed, NAMES, STARTED, TOLD).identity == "ours"
    assert check_presence(client, bare, NAMES, STARTED, TOLD).state == "refusing"


def test_paths_of_the_other_engine_are_none(client: Http, at: ServerEndpoint) -> None:
    assert [client.get(at.url + path, 5.0).status for path in ("/version", "/metrics", "/ping")] == [404, 404, 404]
    assert [client.get(at.url + path, 5.0).status for path in ("/ready", "/health_generate", "/get_model_info")] == [
        200,
        200,
        200,
    ]


def test_reasoning_has_its_name_here_and_any_model_is_taken(client: Http, at: ServerEndpoint) -> None:
    asked: Value = {"model": "x", "messages": [{"role": "user", "content": "What is 17*19?"}]}
    answer = client.post_json(f"{at.url}/v1/chat/completions", asked, {}, 5.0)
    message = json.loads(answer.text)["choices"][0]["message"]
    assert (message["content"], "reasoning" in message) == ("323", False)
    assert message["reasoning_content"]


def test_the_key_is_in_no_answer(client: Http, keyed: ServerEndpoint) -> None:
    assert "sesame" not in client.get(f"{keyed.url}/server_info", 5.0, keyed.headers).text
