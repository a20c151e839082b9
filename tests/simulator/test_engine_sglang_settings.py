import pytest

from gb300serve.simulator.engine.sglang.boot import options_of
from tests.support.sglang import DEEPSEEK, OFFLOADED, WORDS, settings


@pytest.mark.parametrize(
    "launcher",
    [
        (),
        ("python3", "-m", "sglang.launch_server"),
        ("sglang", "serve"),
        ("numactl", "--membind=0", "python3", "-m", "sglang.launch_server"),
    ],
)
def test_the_launcher_is_no_option(launcher: tuple[str, ...]) -> None:
    assert options_of((*launcher, *WORDS)) == WORDS


def test_options_by_their_meaning() -> None:
    found = settings()
    assert (found.model, found.served_names, found.port) == ("/model", ("glm-5.3-flash",), 30001)
    assert (found.max_model_len, found.max_num_seqs, found.max_num_batched_tokens) == (1048576, 16, 8192)
    assert found.demand.gpu_memory_utilization == 0.85
    assert settings(("--model-path", "/model")).port == 30000


def test_a_share_of_the_layers_is_a_share_of_the_experts() -> None:
    found = settings(OFFLOADED, DEEPSEEK)
    assert found.demand.offloads
    assert found.demand.host_tables
    assert found.options["cpu_offload_gb"] == pytest.approx(
        sum(parameter.bytes for parameter in found.checkpoint.parameters) / 1024**3 / 2, abs=0.01
    )
