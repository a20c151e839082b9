from dataclasses import replace

from gb300serve.lifecycle.identity import endpoint_of, engine_of, served_names
from gb300serve.probe.endpoint import SGLANG, VLLM, ServerEndpoint
from tests.support.launches import STRANGER, container, launch

V14 = launch()


def test_the_container_knows_better_than_the_recipe() -> None:
    moved = container(V14, command=("--port", "30007", "--served-model-name", "a", "b", "--seed", "1"))
    assert endpoint_of(moved, V14) == ServerEndpoint("http://127.0.0.1:30007")
    assert served_names(moved, V14) == ("a", "b")


def test_the_recipe_fills_what_the_command_lacks() -> None:
    bare = container(V14, command=("/model",), host_network=False)
    assert endpoint_of(bare, replace(V14, address="10.0.0.2")) == ServerEndpoint("http://10.0.0.2:30006")
    assert endpoint_of(bare, None) is None
    assert served_names(bare, V14) == ("dsv41-flash-uva",)
    assert served_names(bare, None) == ("/model",)


VLLM_STRANGER = replace(STRANGER, image="vllm/vllm-openai")


def test_keys_come_from_the_command_or_the_environment() -> None:
    assert endpoint_of(replace(STRANGER, command=("--port=1", "--api-key=k")), None) == ServerEndpoint(
        "http://127.0.0.1:1", "k", SGLANG
    )
    keyed = replace(
        STRANGER, image="vllm/vllm-openai", env={"VLLM_API_KEY": "k"}, host_network=False, published=(8021,)
    )
    assert endpoint_of(keyed, None) == ServerEndpoint("http://127.0.0.1:8021", "k", VLLM)


def test_what_an_engine_is_asked_follows_from_the_recipe_or_the_image() -> None:
    assert engine_of(STRANGER, None) == SGLANG
    assert (
        engine_of(replace(STRANGER, image="local", command=("python3", "-m", "sglang.launch_server")), None) == SGLANG
    )
    assert engine_of(replace(STRANGER, image="local", command=("--model", "/m")), None) == VLLM
    assert engine_of(STRANGER, V14) == VLLM
