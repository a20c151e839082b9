from gb300serve.host.linux import HostMemory, parse_meminfo
from gb300serve.host.missing import Missing

TEXT = (
    "MemTotal:       24688092 kB\nMemFree:         1 kB\nMemAvailable:   23901024 kB\nCached:  2411 kB\nHugePages: 0\n"
)


def test_the_three_figures() -> None:
    assert parse_meminfo(TEXT) == HostMemory(24688092 * 1024, 23901024 * 1024, 2411 * 1024)


def test_a_kernel_without_them() -> None:
    assert parse_meminfo("MemTotal: 1 kB\n") == Missing("/proc/meminfo has no MemAvailable")
    assert parse_meminfo("") == Missing("/proc/meminfo has no MemTotal")
