from gb300serve.host.missing import Missing
from gb300serve.host.nvidia import ComputeProcess, parse_compute_apps
from tests.support.fake_machine import NO_PROCESSES


def test_no_process() -> None:
    assert parse_compute_apps(NO_PROCESSES) == ()
    assert parse_compute_apps("") == ()


def test_processes_by_the_names_of_the_columns() -> None:
    text = "pid, process_name, used_gpu_memory [MiB], gpu_uuid\n4711, VLLM::EngineCore, 238706 MiB, GPU-1\n"
    assert parse_compute_apps(text) == (ComputeProcess(4711, "VLLM::EngineCore", 238706 * 1024**2, "GPU-1"),)
    assert parse_compute_apps(f"{NO_PROCESSES}12, 2 MiB, GPU-1, /usr/bin/a, b\n") == (
        ComputeProcess(12, "/usr/bin/a, b", 2 * 1024**2, "GPU-1"),
    )


def test_what_a_user_may_not_see() -> None:
    text = f"{NO_PROCESSES}4711, [N/A], GPU-1, [Insufficient Permissions]\n"
    assert parse_compute_apps(text) == (ComputeProcess(4711, None, None, "GPU-1"),)


def test_output_that_is_none() -> None:
    assert parse_compute_apps("a\nFailed to initialize NVML\n") == Missing("nvidia-smi said: Failed to initialize NVML")
