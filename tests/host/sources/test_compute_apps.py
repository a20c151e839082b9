from gb300serve.host.missing import Missing
from gb300serve.host.sources.compute_apps import ComputeProcess, parse
from tests.support.fake_machine import NO_PROCESSES


def test_no_process() -> None:
    assert parse(NO_PROCESSES) == ()
    assert parse("") == ()


def test_processes_by_the_names_of_the_columns() -> None:
    text = "pid, process_name, used_gpu_memory [MiB], gpu_uuid\n4711, VLLM::EngineCore, 238706 MiB, GPU-1\n"
    assert parse(text) == (ComputeProcess(4711, "VLLM::EngineCore", 238706 * 1024**2, "GPU-1"),)
    assert parse(f"{NO_PROCESSES}12, 2 MiB, GPU-1, /usr/bin/a, b\n") == (
        ComputeProcess(12, "/usr/bin/a, b", 2 * 1024**2, "GPU-1"),
    )


def test_what_a_user_may_not_see() -> None:
    text = f"{NO_PROCESSES}4711, [N/A], GPU-1, [Insufficient Permissions]\n"
    assert parse(text) == (ComputeProcess(4711, None, None, "GPU-1"),)


def test_output_that_is_none() -> None:
    assert parse("a\nFailed to initialize NVML\n") == Missing("nvidia-smi said: Failed to initialize NVML")
