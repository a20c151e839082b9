import pytest

from gb300serve.app.launch import NotSimulatedError, only_simulated
from gb300serve.app.services import SIM_SPEED
from gb300serve.simulator.station import Rehearsal
from tests.support.invoke import run


@pytest.mark.parametrize("words", [("--sim-fault", "gpu-oom"), ("--sim-speed", "800")])
def test_a_rehearsal_is_never_a_real_launch(words: tuple[str, str]) -> None:
    answer = run("up", "v14", *words)
    said = f"gb300serve: {' '.join(words)} is for the simulated Station, and this would be a real launch\n"
    assert (answer.code, answer.err) == (2, f"{said}  hint: add --on sim\n")


def test_a_return_to_a_real_release_is_no_rehearsal() -> None:
    answer = run("rollback", "--on", "docker", "--sim-fault", "gpu-oom")
    assert (answer.code, answer.err.splitlines()[-1]) == (2, "  hint: add --on sim")


def test_the_simulated_station_takes_both() -> None:
    only_simulated(Rehearsal(800.0, "gpu-oom"), "sim")
    only_simulated(Rehearsal(SIM_SPEED), "docker")
    with pytest.raises(NotSimulatedError):
        only_simulated(Rehearsal(800.0), "docker")
