import pytest

from gb300serve.fit.model import STATION, GraceMemory, HostPlan, host_verdict


def host(resident: float, bound: float) -> HostPlan:
    return HostPlan(60.0, 61.0, 188.0, resident, bound)


@pytest.mark.parametrize(
    ("resident", "bound", "available", "verdict"),
    [
        (250.0, 372.0, 494.5, "fits"),
        (300.0, 474.5, 494.5, "fits"),
        (300.0, 474.6, 494.5, "short"),
        (440.0, 736.0, 494.5, "short"),
        (440.1, 736.0, 494.5, "refused"),
        (250.0, 300.0, 249.0, "refused"),
        (200.0, 230.0, 249.0, "short"),
    ],
)
def test_verdict(resident: float, bound: float, available: float, verdict: str) -> None:
    assert host_verdict(host(resident, bound), GraceMemory(available, "MemAvailable")) == verdict


def test_the_default_says_that_it_is_assumed() -> None:
    assert (STATION.available_gib, STATION.basis.partition(":")[0]) == (494.5, "assumed")
