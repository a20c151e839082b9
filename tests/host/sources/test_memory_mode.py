from gb300serve.host.missing import Missing
from gb300serve.host.nvidia import parse_memory_mode


def test_the_mode_among_other_parameters() -> None:
    assert parse_memory_mode('ResmanDebugLevel: 4294967295\nCoherentGPUMemoryMode: "driver"\nX: 1\n') == "driver"
    assert parse_memory_mode('CoherentGPUMemoryMode: ""\n') == ""
    assert parse_memory_mode('CoherentGPUMemoryMode: "numa"\n') == "numa"


def test_a_driver_without_it() -> None:
    why = "/proc/driver/nvidia/params has no CoherentGPUMemoryMode: the driver is too old to know it"
    assert parse_memory_mode("ResmanDebugLevel: 4294967295\n") == Missing(why)
