import math
from dataclasses import replace

import pytest

from gb300serve.boot.diagnosis import Diagnosis
from gb300serve.boot.receipts import LogFacts
from gb300serve.engines.logs import boot_machine
from gb300serve.fit.checkpoint import known_checkpoints
from gb300serve.fit.remedy import BootLogReader, remedies
from tests.support.simulated import V14, boot_script, changed, said

FLASH = known_checkpoints()[0]
NAMES = "cpu_offload_params [routed_experts.w13_weight, routed_experts.w2_weight]"


def read(lines: list[str]) -> tuple[Diagnosis, LogFacts]:
    machine, heard = boot_machine(), LogFacts("non-default args:")
    for line in lines:
        heard.take(line, machine.feed(line))
    return machine.result(), heard


def found(*words: str) -> tuple[str, ...]:
    return remedies(*read(said(boot_script(words))))


def test_too_small_by_this_boot_s_own_constant() -> None:
    assert found(*changed("--cpu-offload-gb", "55")) == (
        "cpu_offload_gb 57 moves 61.17 GiB and fits, with 4.87 GiB of KV cache (computed)",
    )


def test_negative_at_a_lower_share_of_the_gpu() -> None:
    assert found(*changed("--gpu-memory-utilization", "0.94")) == (
        "cpu_offload_gb 64 moves 67.50 GiB and fits, with 3.71 GiB of KV cache (computed)",
        "gpu_memory_utilization 0.96 fits, with 2.38 GiB of KV cache (computed)",
        "max_model_len 262144 fits, with 2.12 GiB of KV cache (assumed)",
    )


def test_a_gpu_that_is_full_of_weights() -> None:
    assert found(*changed("--cpu-offload-gb", "0")) == (
        "cpu_offload_gb 57 moves 61.17 GiB and fits, with 4.88 GiB of KV cache (computed)",
    )


@pytest.mark.parametrize(
    ("asked", "moves"),
    [
        ("60", "cpu_offload_gb 60 moves 61.17 GiB and fits, with 4.87 GiB of KV cache (measured)"),
        ("66", "cpu_offload_gb 66 moves 67.50 GiB and fits, with 11.21 GiB of KV cache (computed)"),
    ],
)
def test_names_that_match_nothing(asked: str, moves: str) -> None:
    words = changed("--cpu-offload-params", "experts.*")
    index = words.index("--cpu-offload-gb") + 1
    assert found(*words[:index], asked, *words[index + 1 :]) == (f"with {NAMES} {moves}",)


def test_names_that_would_match_with_too_little_asked() -> None:
    words = changed("--cpu-offload-params", "experts.*")
    index = words.index("--cpu-offload-gb") + 1
    assert found(*words[:index], "50", *words[index + 1 :])[0] == (
        f"with {NAMES} cpu_offload_gb 57 moves 61.17 GiB and fits, with 4.88 GiB of KV cache (computed)"
    )


def test_names_that_match_while_the_engine_moves_nothing() -> None:
    lines = said(boot_script(changed("--cpu-offload-params", "experts.*")))
    lines = [line.replace("'experts.*'", "'routed_experts.w13_weight', 'routed_experts.w2_weight'") for line in lines]
    assert remedies(*read(lines)) == (
        "the patterns match 61.17 GiB in 19 parameters, but the engine ignored them (measured)",
    )


def test_a_loop_has_the_values_of_its_first_boot() -> None:
    lines = said(boot_script(changed("--cpu-offload-gb", "55")))
    diagnosis, heard = read([*lines, *lines, *lines])
    assert diagnosis.reason == "crash-loop"
    assert remedies(diagnosis, heard)[0].startswith("cpu_offload_gb 57 moves 61.17 GiB and fits")


def test_another_failure_or_none_has_no_remedy_of_memory() -> None:
    assert found(*V14) == ()
    assert found(*changed("--tool-call-parser", "no_such_parser")) == ()


BY_FIGURES = "cpu_offload_gb 58 moves 1.55 GiB more and fits, if the patterns match that much (computed from the log)"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("'cpu_offload_gb': 55.0", "'cpu_offload_gb': 55.0, 'tensor_parallel_size': 2"),
        ("Checkpoint size: 475.27 GiB", "Checkpoint size: 150.10 GiB"),
        ("DeepseekV41ForCausalLM", "GardenForCausalLM"),
        ("parameters: 56.95", "parameters: 55.92"),
    ],
)
def test_of_other_sizes_and_machines_the_log_s_own_figures_speak(old: str, new: str) -> None:
    lines = said(boot_script(changed("--cpu-offload-gb", "55")))
    assert sum(old in line for line in lines) > 0
    moved = 55.92 if "55.92" in new else 56.95
    asked = math.ceil(moved + 1.55 + 0.15)
    assert remedies(*read([line.replace(old, new) for line in lines])) == (BY_FIGURES.replace("58", str(asked)),)


@pytest.mark.parametrize(
    ("old", "new"),
    [("'offload_backend': 'uva'", "'offload_backend': 'prefetch'"), ("'enable_auto_tool_choice': True}", "'enable_a")],
)
def test_nothing_is_said_of_what_is_not_known(old: str, new: str) -> None:
    lines = said(boot_script(changed("--cpu-offload-gb", "55")))
    assert sum(old in line for line in lines) > 0
    assert remedies(*read([line.replace(old, new) for line in lines])) == ()


def test_nothing_is_said_of_another_gpu() -> None:
    lines = said(boot_script(changed("--cpu-offload-gb", "0")))
    assert remedies(*read([line.replace("capacity of 249.81", "capacity of 139.80") for line in lines])) == ()


def test_the_caller_may_know_the_checkpoint_better() -> None:
    lines = said(boot_script(changed("--cpu-offload-gb", "55")))
    lines = [line.replace("DeepseekV41ForCausalLM", "GardenForCausalLM") for line in lines]
    assert remedies(*read(lines), replace(FLASH, repo="acme/other"))[0].startswith("cpu_offload_gb 57 moves 61.17 GiB")


@pytest.mark.parametrize(
    ("damage", "kv_cache_gib"),
    [(("parameters: 56.95", "parameters: ."), 4.88), (("size: 475.27 GiB", "size: . GiB"), 4.87)],
)
def test_damaged_figures_are_none(damage: tuple[str, str], kv_cache_gib: float) -> None:
    whole = said(boot_script(changed("--cpu-offload-gb", "55")))
    lines = [line.replace(*damage) for line in whole]
    assert lines != whole
    assert remedies(*read(lines)) == (
        f"cpu_offload_gb 57 moves 61.17 GiB and fits, with {kv_cache_gib} GiB of KV cache (computed)",
    )


SHORT = said(boot_script(changed("--cpu-offload-gb", "55")))


def test_a_log_is_advised_on_with_numbers() -> None:
    reading, machine = BootLogReader(), boot_machine()
    for line in SHORT:
        assert reading.feed(line) == machine.feed(line)
    plain, found = machine.result(), reading.result()
    assert found.advice == (*plain.advice[:2], *remedies(plain, reading.facts), *plain.advice[2:])
    assert [one for one in found.advice if one.startswith("cpu_offload_gb 57 moves 61.17 GiB and fits")]
    assert (found.reason, found.values, found.evidence) == (plain.reason, plain.values, plain.evidence)


def test_nothing_is_added_to_a_boot_that_serves() -> None:
    reading = BootLogReader()
    for line in said(boot_script()):
        reading.feed(line)
    assert (reading.result().state, reading.result().advice) == ("ready", ())
