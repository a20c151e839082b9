from dataclasses import replace

import pytest

from gb300serve.lifecycle.reconcile import engine_port, on_gpu, on_port
from tests.support.launches import STRANGER


@pytest.mark.parametrize(
    ("wanted", "held", "clash"),
    [
        ("all", "all", True),
        ("all", None, False),
        (None, "all", False),
        ("1", "device=GPU-a", True),
        ("device=GPU-a", "device=GPU-b", False),
        ("device=GPU-a,GPU-b", "device=GPU-b", True),
    ],
)
def test_only_lists_of_devices_can_be_told_apart(wanted: str | None, held: str | None, clash: bool) -> None:
    assert any(on_gpu(wanted, (replace(STRANGER, gpus=held),))) is clash


def test_a_label_can_say_that_a_container_holds_the_gpu() -> None:
    assert any(on_gpu("all", (replace(STRANGER, gpus=None, labels={"gpu-lane": "1"}),)))
    assert not any(on_gpu("all", (replace(STRANGER, gpus=None, labels={"gpu-lane": "0"}),)))


@pytest.mark.parametrize(
    ("image", "command", "port"),
    [
        ("x", ("--port", "30006"), 30006),
        ("x", ("--port=30006",), 30006),
        ("x", ("--port",), None),
        ("x", ("--port", "abc"), None),
        ("postgres", (), None),
        ("vllm/vllm-openai:x", ("--model", "/model"), 8000),
        ("local", ("python3", "-m", "sglang.launch_server"), 30000),
    ],
)
def test_the_port_of_an_engine(image: str, command: tuple[str, ...], port: int | None) -> None:
    assert engine_port(replace(STRANGER, image=image, command=command)) == port


def test_published_ports_and_the_hosts_network_take_ports_of_the_host() -> None:
    published = replace(STRANGER, host_network=False, published=(8021,))
    assert list(on_port(8021, (published,))) == [published]
    assert list(on_port(30100, (published,))) == []
    assert list(on_port(30100, (STRANGER,))) == [STRANGER]
