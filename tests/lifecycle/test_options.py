import pytest

from gb300serve.lifecycle.backend import differences, wanted_options
from gb300serve.plan.model import ContainerPlan, Mount

PLAN = ContainerPlan(
    name="dsv41-vllm",
    ipc="host",
    network="host",
    ulimits={"memlock": -1, "nofile": (1024, 4096)},
    cap_add=("IPC_LOCK",),
    mounts=(Mount("/models/x", "/model", read_only=True), Mount("/cache/", "/root/.cache/vllm/")),
    entrypoint="/switch/entry",
)
WANTED = {
    "network": "host",
    "ipc": "host",
    "cap_add": "IPC_LOCK",
    "mounts./model": "/models/x, read-only",
    "mounts./root/.cache/vllm": "/cache",
    "ulimits.memlock": "-1",
    "ulimits.nofile": "1024:4096",
    "entrypoint": "/switch/entry",
}


def test_a_plan_by_field() -> None:
    assert wanted_options(PLAN) == WANTED
    assert wanted_options(ContainerPlan(name="x")) == {"network": "bridge", "ipc": "private", "cap_add": "nothing"}


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
