"""Options that only the simulated Station has: with one of them, nothing is launched for real."""

from gb300serve.cli.services import SIM_SPEED, On
from gb300serve.core.errors import CommandLineError
from gb300serve.simulator.station import Rehearsal


class NotSimulatedError(CommandLineError):
    """A rehearsal was asked for, and a real launch was about to follow."""

    def __init__(self, option: str) -> None:
        super().__init__(f"{option} is for the simulated Station, and this would be a real launch", hint="add --on sim")


def only_simulated(rehearsal: Rehearsal, on: On) -> None:
    """Raises NotSimulatedError (2) where `rehearsal` asks for what Docker has not."""
    if on == "sim":
        return
    if rehearsal.fault is not None:
        raise NotSimulatedError(f"--sim-fault {rehearsal.fault}")
    if rehearsal.speed != SIM_SPEED:
        raise NotSimulatedError(f"--sim-speed {rehearsal.speed:g}")
