import pytest

from gb300serve.adapters.gpu import GpuUse, HostGpuMemory, busy
from gb300serve.lifecycle.backend import GpuHeld
from tests.support.fake_clock import FakeClock
from tests.support.fake_machine import H200, NO_PROCESSES, FakeMachine

ID = "0123456789abcdef" * 4
MIB = 1024**2


def test_the_memory_of_a_container() -> None:
    machine = FakeMachine(
        programs={"--query-gpu=": H200, "--query-compute-apps=": f"{NO_PROCESSES}7, 10 MiB, GPU-1, vllm\n"},
        files={"/proc/7/cgroup": f"0::/docker/{ID}\n"},
    )
    assert HostGpuMemory(machine).held() == GpuHeld({ID: 10 * MIB}, 0)


def test_without_nvidia_smi() -> None:
    assert HostGpuMemory(FakeMachine()).held() == GpuHeld(missing="nvidia-smi is not on PATH")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("24467, 12\n256703, 87\n", 0.87),
        ("143771, 0\n", 0.0),
        ("256703, [N/A]\n24467, 12\n", 0.12),
        ("[N/A], [Not Supported]\n", None),
        ("", None),
    ],
)
def test_the_large_gpu_counts(text: str, expected: float | None) -> None:
    assert busy(text) == expected


def test_it_is_asked_rarely() -> None:
    clock, asked = FakeClock(), []

    def ask(argv: tuple[str, ...], patience: float) -> str | None:
        asked.append(argv[0])
        return f"256703, {len(asked)}\n"

    use = GpuUse(clock, ask)
    assert (use(), use()) == (0.01, 0.01)
    clock.sleep(10.0)
    assert use() == 0.02
    assert asked == ["nvidia-smi", "nvidia-smi"]


def test_without_the_program_nobody_can_tell() -> None:
    assert GpuUse(FakeClock(), lambda argv, patience: None)() is None
