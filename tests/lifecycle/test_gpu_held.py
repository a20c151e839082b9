import pytest

from gb300serve.host.facts import GpuHolder
from gb300serve.host.missing import Missing
from gb300serve.host.nvidia import ComputeProcess
from gb300serve.lifecycle.backend import GpuHeld, told_by
from tests.support.hosts import DISPLAY, GB300, GIB, MIB


def process(container: str | None, used: int | None) -> GpuHolder:
    return GpuHolder(ComputeProcess(7, "python3", used, "GPU-300"), container)


def test_the_processes_of_a_container_are_added_up() -> None:
    processes = (process("a", GIB), process("a", 2 * GIB), process("b", None), process(None, GIB))
    assert told_by((DISPLAY, GB300), processes) == GpuHeld({"a": 3 * GIB}, GB300.used)


def test_what_cannot_be_read() -> None:
    no_tool = Missing("nvidia-smi is not on PATH")
    assert told_by(no_tool, no_tool) == GpuHeld(missing=no_tool.why)
    assert told_by((GB300,), no_tool) == GpuHeld(in_use=GB300.used)
    assert told_by(no_tool, ()) == GpuHeld(missing=no_tool.why)
    assert told_by(no_tool, (process("a", GIB),)) == GpuHeld({"a": GIB})


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (GpuHeld({"a": 200 * GIB}), "it holds 200.0 GiB of the GPU's memory"),
        (
            GpuHeld({"b": GIB}, 300 * MIB),
            "300 MiB of the GPU's memory are in use, and which process is its own cannot be told",
        ),
        (GpuHeld(), "how much of the GPU's memory it holds was not checked (the driver does not say)"),
        (GpuHeld(missing="no tool"), "how much of the GPU's memory it holds was not checked (no tool)"),
    ],
)
def test_what_is_said_of_one_container(told: GpuHeld, sentence: str) -> None:
    assert told.sentence("a") == sentence
