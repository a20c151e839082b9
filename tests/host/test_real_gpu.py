"""What the tools of driver 580.159.04 printed on a machine with one H200, read as doctor reads it."""

from pathlib import Path

from gb300serve.host import nvidia
from gb300serve.host.missing import Missing
from gb300serve.host.nvidia import Gpu, gpus_named, parse_gpu_list

PRINTED = Path(__file__).parent / "h200"
UUID = "GPU-6f1d2c3b-0000-4000-8000-00000000a1b2"


def printed(name: str) -> str:
    return (PRINTED / name).read_text(encoding="utf-8")


def test_the_list_names_the_gpu() -> None:
    gpus = parse_gpu_list(printed("list.txt"))
    assert gpus == (Gpu("NVIDIA H200", UUID),)
    assert gpus_named(gpus, "H200") == gpus
    assert gpus_named(gpus, "GB300") == ()


def test_its_state() -> None:
    found = nvidia.parse_gpu_states(printed("gpus.csv"))
    assert not isinstance(found, Missing)
    (gpu,) = found
    assert (gpu.name, gpu.uuid, gpu.driver) == ("NVIDIA H200", UUID, "580.159.04")
    assert gpu.memory == 143771 * 2**20
    assert (gpu.used, gpu.cuda_memory) == (0, 143156 * 2**20)


def test_a_process_that_computes() -> None:
    found = nvidia.parse_compute_apps(printed("apps.csv"))
    assert not isinstance(found, Missing)
    (process,) = found
    assert (process.pid, process.name, process.gpu) == (544, "python3", UUID)


def test_a_gpu_without_coherent_memory_has_no_mode() -> None:
    assert nvidia.parse_memory_mode(printed("params.txt")) == ""
