from gb300serve.host.nvidia import Gpu, gpus_named, parse_gpu_list

TEXT = "GPU 0: NVIDIA RTX PRO 4000 (UUID: GPU-1)\nGPU 1: NVIDIA GB300 (UUID: GPU-2)\n"


def test_by_name_and_never_by_index() -> None:
    gpus = parse_gpu_list(TEXT)
    assert gpus == (Gpu("NVIDIA RTX PRO 4000", "GPU-1"), Gpu("NVIDIA GB300", "GPU-2"))
    assert gpus_named(gpus, "gb300") == (Gpu("NVIDIA GB300", "GPU-2"),)
    assert gpus_named(gpus, "GB30") == ()
    assert parse_gpu_list("No devices were found\n") == ()
