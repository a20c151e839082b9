import pytest

from gb300serve.host.missing import Missing
from gb300serve.host.nvidia import GPU_STATE_FIELDS, GpuState, gpu_state_command, parse_gpu_states, without_rejected
from tests.support.fake_machine import H200

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
