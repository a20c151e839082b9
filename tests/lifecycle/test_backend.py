import pytest

from gb300serve.core.errors import BackendError
from gb300serve.core.values import Missing
from gb300serve.host.facts import GpuHolder
from gb300serve.host.nvidia import ComputeProcess
from gb300serve.lifecycle.backend import PATIENCE, Absence, GpuHeld, differences, told_by, wanted_options
from gb300serve.plan.model import ContainerPlan, Mount
from tests.support.fake_clock import FakeClock
from tests.support.hosts import DISPLAY, GB300, GIB, MIB


def ask(absence: Absence, error: Exception | None) -> None:
    with absence:
        if error:
            raise error


def test_it_is_waited_for_so_long_and_each_time_anew() -> None:
    clock, away = FakeClock(), BackendError("no Docker Engine answers")
    absence = Absence(clock)
    for _ in range(2):
        ask(absence, away)
        clock.sleep(PATIENCE)
        ask(absence, away)
        ask(absence, None)
    ask(absence, away)
    clock.sleep(PATIENCE + 1)
    with pytest.raises(BackendError, match="no Docker Engine answers"):
        ask(absence, away)


def test_nothing_else_is_let_fail() -> None:
    with pytest.raises(KeyError):
        ask(Absence(FakeClock()), KeyError("x"))


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


PLAN = ContainerPlan(
    name="dsv41-vllm",
    ipc="host",
    network="host",
    ulimits={"memlock": -1, "nofile": (1024, 4096)},
    cap_add=("IPC_LOCK",),
    mounts=(Mount("/models/x", "/model", read_only=True), Mount("/cache/", "/root/.cache/vllm/")),
    privileged=True,
    group_add=("video", "109"),
    cpuset_cpus="0-71",
    add_host=("v6=[::1]",),
    entrypoint="/switch/entry",
)
WANTED = {
    "network": "host",
    "ipc": "host",
    "cap_add": "IPC_LOCK",
    "privileged": "true",
    "group_add": "109 video",
    "cpuset_cpus": "0-71",
    "add_host": "v6:::1",
    "mounts./model": "/models/x, read-only",
    "mounts./root/.cache/vllm": "/cache",
    "ulimits.memlock": "-1",
    "ulimits.nofile": "1024:4096",
    "entrypoint": "/switch/entry",
}


def test_a_plan_by_field() -> None:
    assert wanted_options(PLAN) == WANTED
    unset = dict.fromkeys(("cap_add", "privileged", "group_add", "cpuset_cpus", "add_host"), "nothing")
    assert wanted_options(ContainerPlan(name="x")) == {"network": "bridge", "ipc": "private", **unset}


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (WANTED, []),
        ({**WANTED, "ulimits.core": "0"}, []),  # the daemon's own
        ({**WANTED, "network": "bridge"}, [("network", "host", "bridge")]),
        ({**WANTED, "mounts./model": "/models/x"}, [("mounts./model", "/models/x, read-only", "/models/x")]),
        ({**WANTED, "mounts./more": "/x"}, [("mounts./more", "nothing", "/x")]),
        (
            {name: text for name, text in WANTED.items() if name != "ulimits.memlock"},
            [("ulimits.memlock", "-1", "nothing")],
        ),
    ],
)
def test_what_differs(found: dict[str, str], told: list[tuple[str, str, str]]) -> None:
    assert list(differences(WANTED, found)) == told
