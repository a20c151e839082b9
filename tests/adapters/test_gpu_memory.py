from gb300serve.adapters.gpu import HostGpuMemory
from gb300serve.lifecycle.backend import GpuHeld
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
