from gb300serve.host.gpus import Gpu, listed, named

TEXT = "GPU 0: NVIDIA RTX PRO 4000 (UUID: GPU-1)\nGPU 1: NVIDIA GB300 (UUID: GPU-2)\n"


def test_by_name_and_never_by_index() -> None:
    gpus = listed(TEXT)
    assert gpus == (Gpu("NVIDIA RTX PRO 4000", "GPU-1"), Gpu("NVIDIA GB300", "GPU-2"))
    assert named(gpus, "gb300") == (Gpu("NVIDIA GB300", "GPU-2"),)
    assert named(gpus, "GB30") == ()
    assert listed("No devices were found\n") == ()
