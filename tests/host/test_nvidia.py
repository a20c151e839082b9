import pytest

from gb300serve.host.missing import Missing
from gb300serve.host.nvidia import (
    GPU_STATE_FIELDS,
    ComputeProcess,
    Gpu,
    GpuState,
    csv_rows,
    gpu_state_command,
    gpus_named,
    mebibytes,
    number,
    parse_compute_apps,
    parse_gpu_list,
    parse_gpu_states,
    parse_memory_mode,
    whole,
    without_rejected,
)
from tests.support.fake_machine import H200, NO_PROCESSES


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


MIB = 1024**2


def read(text: str) -> tuple[GpuState, ...]:
    found = parse_gpu_states(text)
    assert not isinstance(found, Missing)
    return found


def test_an_h200() -> None:
    assert parse_gpu_states(H200) == (
        GpuState(
            name="NVIDIA H200",
            uuid="GPU-00000000-0000-0000-0000-000000000000",
            index=0,
            driver="580.159.04",
            memory=143771 * MIB,
            reserved=615 * MIB,
            used=0,
            compute_capability="9.0",
            power_limit=700.0,
            power_limit_max=700.0,
            power_draw=124.0,
            clocks_held_back=(),
        ),
    )


def test_the_total_of_cuda_is_what_the_driver_does_not_reserve() -> None:
    """NVML says 150,754,820,096 bytes there and CUDA 150,109,880,320: nvidia-smi rounds both to MiB."""
    (gpu,) = read(H200)
    assert gpu.memory is not None
    assert abs(gpu.memory - 150_754_820_096) < MIB
    assert gpu.cuda_memory is not None
    assert abs(gpu.cuda_memory - 150_109_880_320) < MIB


def test_an_older_driver_says_what_is_free_and_not_what_is_reserved() -> None:
    fewer = "name, uuid, memory.total [MiB], memory.used [MiB], memory.free [MiB]"
    (gpu,) = read(f"{fewer}\nNVIDIA H200, GPU-1, 143771 MiB, 10 MiB, 143146 MiB\n")
    assert (gpu.reserved, gpu.cuda_memory) == (615 * MIB, 143156 * MIB)
    (gpu,) = read(f"{fewer}\nNVIDIA H200, GPU-1, 143771 MiB, 10 MiB, [N/A]\n")
    assert (gpu.reserved, gpu.cuda_memory) == (None, None)


def test_every_value_but_name_and_uuid_may_be_missing() -> None:
    head = H200.splitlines()[0]
    row = "[N/A], NVIDIA GB300, GPU-1, [N/A], [Not Supported], [N/A], [Insufficient Permissions], " + ", ".join(
        ["[N/A]"] * 7
    )
    assert parse_gpu_states(f"{head}\n{row}\n") == (GpuState("NVIDIA GB300", "GPU-1"),)
    (gpu,) = read(f"{head}\n{row}\n")
    assert gpu.cuda_memory is None


def test_a_script_that_prints_something_else() -> None:
    assert parse_gpu_states("200000 MiB\n") == ()
    assert parse_gpu_states("a\nUnable to determine the device handle\n") == Missing(
        "nvidia-smi said: Unable to determine the device handle"
    )


@pytest.mark.parametrize(
    ("mask", "reasons"),
    [
        ("0x0000000000000001", ()),
        ("0x0000000000000004", ("software power cap",)),
        ("0x00000000000000E0", ("software thermal slowdown", "hardware thermal slowdown", "hardware power brake")),
        ("Active", None),
    ],
)
def test_what_holds_the_clocks_back(mask: str, reasons: tuple[str, ...] | None) -> None:
    for column in ("clocks_event_reasons.active", "clocks_throttle_reasons.active"):
        found = parse_gpu_states(f"name, uuid, {column}\nNVIDIA GB300, GPU-1, {mask}\n")
        assert found == (GpuState("NVIDIA GB300", "GPU-1", clocks_held_back=reasons),)


def test_a_field_that_the_driver_does_not_know() -> None:
    said = 'nvidia-smi failed: Field "clocks_event_reasons.active" is not a valid field to query.'
    fewer = without_rejected(GPU_STATE_FIELDS, said)
    assert fewer is not None
    assert set(GPU_STATE_FIELDS) - set(fewer) == {"clocks_event_reasons.active"}
    assert set(fewer) - set(GPU_STATE_FIELDS) == {"clocks_throttle_reasons.active"}
    assert without_rejected(("name", "power.draw"), 'Field "power.draw" is not a valid field to query.') == ("name",)
    assert without_rejected(GPU_STATE_FIELDS, "nvidia-smi is not on PATH") is None
    assert without_rejected(("name",), said) is None


def test_the_words() -> None:
    assert gpu_state_command(("name", "uuid")) == ("nvidia-smi", "--query-gpu=name,uuid", "--format=csv")


def test_the_mode_among_other_parameters() -> None:
    assert parse_memory_mode('ResmanDebugLevel: 4294967295\nCoherentGPUMemoryMode: "driver"\nX: 1\n') == "driver"
    assert parse_memory_mode('CoherentGPUMemoryMode: ""\n') == ""
    assert parse_memory_mode('CoherentGPUMemoryMode: "numa"\n') == "numa"


def test_a_driver_without_it() -> None:
    why = "/proc/driver/nvidia/params has no CoherentGPUMemoryMode: the driver is too old to know it"
    assert parse_memory_mode("ResmanDebugLevel: 4294967295\n") == Missing(why)


def test_values_by_column_without_the_unit_and_without_what_is_missing() -> None:
    text = "index, memory.used [MiB], power.limit [W], a, b, c\n0, 12 MiB, [N/A], [Not Supported], N/A, x\n\n"
    assert list(csv_rows(text)) == [{"index": "0", "memory.used": "12 MiB", "c": "x"}]


def test_the_last_column_takes_the_commas() -> None:
    assert list(csv_rows("pid, name\n7, python3 -c a, b\n")) == [{"pid": "7", "name": "python3 -c a, b"}]


def test_rows_of_nothing() -> None:
    assert list(csv_rows("")) == []
    assert list(csv_rows("pid, name\n")) == []
    assert list(csv_rows("pid, name\n[N/A], [Insufficient Permissions]\n")) == []


def test_numbers() -> None:
    assert (number("700.00 W"), number("143771 MiB"), number(None), number("Disabled")) == (700.0, 143771.0, None, None)
    assert (whole("12"), whole("-"), whole(None)) == (12, None, None)
    assert (mebibytes("2 MiB"), mebibytes(None)) == (2 * 1024**2, None)


TEXT = "GPU 0: NVIDIA RTX PRO 4000 (UUID: GPU-1)\nGPU 1: NVIDIA GB300 (UUID: GPU-2)\n"


def test_by_name_and_never_by_index() -> None:
    gpus = parse_gpu_list(TEXT)
    assert gpus == (Gpu("NVIDIA RTX PRO 4000", "GPU-1"), Gpu("NVIDIA GB300", "GPU-2"))
    assert gpus_named(gpus, "gb300") == (Gpu("NVIDIA GB300", "GPU-2"),)
    assert gpus_named(gpus, "GB30") == ()
    assert parse_gpu_list("No devices were found\n") == ()
