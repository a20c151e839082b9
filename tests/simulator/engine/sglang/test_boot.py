from dataclasses import replace

import pytest

from gb300serve.boot.machine import BootMachine
from gb300serve.boot.receipts import LogFacts
from gb300serve.engines.logs import boot_machine
from gb300serve.engines.parse import ArgumentRefusedError
from gb300serve.engines.sglang.engine import SEED, seed_in
from gb300serve.fit.learned import parse_arguments as read_back
from gb300serve.simulator.engine.sglang.boot import random_seed, refused_script, startup_times
from gb300serve.simulator.engine.sglang.settings import parse_settings, without_launcher
from tests.support.sglang import DEEPSEEK, DRAFTED, ENVIRONMENT, OFFLOADED, WORDS, boot_script, settings
from tests.support.simulated import STARTED, boot_of, exit_code, said


def phases(machine: BootMachine) -> list[tuple[str, float]]:
    return [(phase.value, seconds) for phase, seconds in machine.result().phases]


@pytest.mark.parametrize("told", [True, False])
def test_a_boot_is_ready_phase_by_phase(*, told: bool) -> None:
    machine = boot_of(boot_script(), told=told)
    diagnosis = machine.result()
    assert (diagnosis.state, diagnosis.reason, machine.engine) == ("ready", None, "sglang")
    found = [name for name, _ in phases(machine)]
    assert found == [
        "starting",
        "loading-weights",
        "profiling",
        "sizing-kv-cache",
        "tuning-kernels",
        "capturing-graphs",
        "serving",
    ]


def test_a_drafter_loads_after_the_model() -> None:
    found = [name for name, _ in phases(boot_of(boot_script(DRAFTED)))]
    assert found[:5] == ["starting", "loading-weights", "profiling", "loading-weights", "profiling"]


def test_layers_move_to_the_host() -> None:
    machine = boot_of(boot_script(OFFLOADED, DEEPSEEK))
    assert machine.result().state == "ready"
    assert "offloading" in [name for name, _ in phases(machine)]


def test_without_offload_that_model_does_not_fit() -> None:
    script = boot_script(OFFLOADED[:8], DEEPSEEK)
    diagnosis = boot_of(script).result()
    assert (diagnosis.state, diagnosis.reason, diagnosis.phase, exit_code(script)) == (
        "failed",
        "gpu-oom",
        "loading-weights",
        137,
    )


def test_a_share_that_weights_use_up() -> None:
    diagnosis = boot_of(boot_script((*WORDS, "--mem-fraction-static", "0.05"))).result()
    assert (diagnosis.reason, diagnosis.phase) == ("kv-cache-negative", "sizing-kv-cache")
    assert diagnosis.values["mem_fraction_static"] == 0.05


def test_figures_of_the_boot() -> None:
    heard, machine = LogFacts("non-default args:"), boot_machine()
    for line in said(boot_script()):
        heard.take(line, machine.feed(line))
    tokens = heard.figure("token_pool", "tokens")
    assert tokens == heard.figure("kv_cache_tokens", "tokens")
    assert (heard.figure("token_pool", "context_len"), heard.figure("token_pool", "max_running_requests")) == (
        1048576,
        16,
    )


def test_its_own_start_stands_in_the_log() -> None:
    found, lines = settings(), said(boot_script())
    echo = next(line for line in lines if "server_args=" in line)
    assert seed_in(echo) == {SEED: random_seed(found, STARTED)}
    spent = startup_times(found, STARTED)
    assert any(f"tokenizer_e2e={spent['tokenizer_e2e']:.2f}" in line for line in lines)
    assert startup_times(found, STARTED + 0.001) != spent
    assert random_seed(settings((*WORDS, "--random-seed", "7")), STARTED) == 7


def test_the_echo_has_every_argument() -> None:
    echo = read_back(next(line for line in said(boot_script()) if "server_args=" in line))
    assert echo is not None
    assert {name: echo[name] for name in ("model_path", "port", "mem_fraction_static", "trust_remote_code")} == {
        "model_path": "/model",
        "port": 30001,
        "mem_fraction_static": 0.85,
        "trust_remote_code": True,
    }
    assert len(echo) > 300


def test_graphs_and_tuning_can_be_left_out() -> None:
    words = (*WORDS, "--disable-cuda-graph", "--disable-flashinfer-autotune")
    found = [name for name, _ in phases(boot_of(boot_script(words)))]
    assert found == ["starting", "loading-weights", "profiling", "sizing-kv-cache", "serving"]


def test_the_same_words_at_the_same_moment_boot_alike() -> None:
    assert boot_script() == boot_script(environment=ENVIRONMENT)


@pytest.mark.parametrize(
    ("words", "reason", "values"),
    [
        (("--max-model-len", "9"), "unknown-argument", {"arguments": "--max-model-len 9"}),
        (("--tool-call-parser", "glm99"), "unknown-parser", {"argument": "--tool-call-parser", "parser": "glm99"}),
        (("--kv-cache-dtype", "fp9"), "kv-dtype-unsupported", {"argument": "--kv-cache-dtype", "value": "fp9"}),
    ],
)
def test_what_the_parser_refuses(words: tuple[str, ...], reason: str, values: dict[str, object]) -> None:
    with pytest.raises(ArgumentRefusedError) as refused:
        parse_settings((*WORDS, *words), ENVIRONMENT)
    script = refused_script(refused.value, STARTED)
    diagnosis = boot_of(script).result()
    assert (diagnosis.reason, diagnosis.values, exit_code(script)) == (reason, values, 2)


def test_what_the_configuration_refuses() -> None:
    too_long = boot_of(boot_script((*WORDS, "--context-length", "9999999"))).result()
    assert (too_long.reason, too_long.values) == ("context-exceeds-model", {"asked": 9999999, "limit": 1048576})
    hidden = boot_of(boot_script(environment=replace(ENVIRONMENT, mounts=("/other",)))).result()
    assert (hidden.reason, hidden.values) == ("model-path-not-visible", {"path": "/model"})


@pytest.mark.parametrize(
    "launcher",
    [
        (),
        ("python3", "-m", "sglang.launch_server"),
        ("sglang", "serve"),
        ("numactl", "--membind=0", "python3", "-m", "sglang.launch_server"),
    ],
)
def test_the_launcher_is_dropped(launcher: tuple[str, ...]) -> None:
    assert without_launcher((*launcher, *WORDS)) == WORDS


def test_options_by_their_meaning() -> None:
    found = settings()
    assert (found.model, found.served_names, found.port) == ("/model", ("glm-5.3-flash",), 30001)
    assert (found.max_model_len, found.max_num_seqs, found.max_num_batched_tokens) == (1048576, 16, 8192)
    assert found.memory_request.gpu_memory_utilization == 0.85
    assert settings(("--model-path", "/model")).port == 30000


def test_a_share_of_the_layers_is_a_share_of_the_experts() -> None:
    found = settings(OFFLOADED, DEEPSEEK)
    assert found.memory_request.offloads
    assert found.memory_request.host_tables
    assert found.options["cpu_offload_gb"] == pytest.approx(
        sum(parameter.bytes for parameter in found.checkpoint.parameters) / 1024**3 / 2, abs=0.01
    )
