from pathlib import Path

import pytest

from gb300serve.plan.compile import on_machine, says_own_address, variable
from gb300serve.plan.model import ContainerPlan, Plan, digest
from tests.plan.test_compile import compiled, refused
from tests.support.spread import OWN, RAY, SGLANG, spread

A = variable("A")


def test_vllms_own_processes(tmp_path: Path) -> None:
    plan = compiled(tmp_path, OWN)
    place = ("--nodes", "2")
    assert place[0] not in plan.command
    assert on_machine(plan, "0", A).command == (
        *plan.command, "--nnodes", "2", "--node-rank", "0", "--master-addr", A,
    )  # fmt: skip
    assert on_machine(plan, "1", A).command == (
        *plan.command, "--nnodes", "2", "--node-rank", "1", "--master-addr", A, "--headless",
    )  # fmt: skip


def test_sglang(tmp_path: Path) -> None:
    plan = compiled(tmp_path, SGLANG)
    words = ("--nnodes", "2", "--node-rank", "1", "--dist-init-addr", f"{A}:20000")
    assert on_machine(plan, "1", A).command == (*plan.command, *words)
    assert not says_own_address(plan)


def words(text: str, directory: Path) -> tuple[str, ...]:
    return on_machine(compiled(directory, text), "0", A).command[2:]


def test_ray_starts_the_program_that_the_image_or_the_recipe_names(tmp_path: Path) -> None:
    engine = ("--model", "/model", "--pipeline-parallel-size", "3", "--distributed-executor-backend", "ray")
    assert words(RAY, tmp_path) == ("leader", A, "vllm", "serve", *engine)
    launched = RAY.replace("  options:", "  launcher: [python3, -m, serve]\n  options:")
    assert words(launched, tmp_path) == ("leader", A, "python3", "-m", "serve", *engine)
    entered = RAY.replace("  ipc: host", "  ipc: host\n  entrypoint: /serve")
    assert words(entered, tmp_path) == ("leader", A, "/serve", *engine)
    worker = on_machine(compiled(tmp_path, RAY), "1", A)
    assert (worker.container.entrypoint, worker.command[2:]) == ("/bin/bash", ("worker", A))


def test_the_digest_knows_nodes_and_nothing_else_changes_it(tmp_path: Path) -> None:
    one = compiled(tmp_path, OWN.replace("nodes: 2\n", ""))
    assert digest(compiled(tmp_path, OWN.replace("nodes: 2", "nodes: 1"))) == digest(one)
    assert digest(compiled(tmp_path, OWN)) != digest(one)


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_what_nodes_says_is_not_said_twice(engine: str, tmp_path: Path) -> None:
    text = spread(2, engine, "{model_path: /model, nnodes: 2}" if engine == "sglang" else "{model: /model, nnodes: 2}")
    message = "engine.options.nnodes is what `nodes` tells each machine for itself"
    assert refused(tmp_path, text) == (message, "remove nnodes, or `nodes`")
    compiled(tmp_path, text.replace("nodes: 2\n", ""))


def test_an_address_that_the_recipe_says_is_left_alone() -> None:
    def plan(**env: str) -> Plan:
        return Plan("a/b", "a", "b", "vllm", None, "i", None, ContainerPlan("c", env=env), (), (), None, None, 2)

    assert says_own_address(plan())
    assert not says_own_address(plan(VLLM_HOST_IP="10.0.0.1"))
