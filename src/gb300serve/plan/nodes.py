"""One model over several machines: what the engine of each one is told, as the engines document it. Pure.

vLLM, "Parallelism and Scaling" (https://docs.vllm.ai/en/stable/serving/parallelism_scaling/): its own processes with
`--nnodes --node-rank --master-addr`, workers `--headless`; or Ray, a head and workers that join it, the server at the
head. SGLang, "Multi-Node Deployment" (https://docs.sglang.ai/references/multi_node_deployment/): `--nnodes --node-rank
--dist-init-addr`. Machine 0 is the leader: it alone answers clients.
"""

from collections.abc import Iterable
from dataclasses import replace

from gb300serve.plan.model import Plan
from gb300serve.plan.words import secret_word

# The options that say the same: a recipe that spans machines leaves them to `nodes`.
OPTIONS = {
    "vllm": ("nnodes", "node_rank", "master_addr", "headless"),
    "sglang": ("nnodes", "node_rank", "dist_init_addr"),
}
BACKEND, RAY = "distributed_executor_backend", "ray"
RAY_PORT = 6379
SGLANG_PORT = 20000
OWN_ADDRESS = "VLLM_HOST_IP"
"""Where vLLM takes its machine's address from; it guesses one, and a Station has several."""

_LEADER = f'ray start --head --port={RAY_PORT} && shift && exec "$@"'
# A worker that is there before the head asks again; one that loses the head ends, and may join the next one.
_WORKER = f'until ray start --address="$1:{RAY_PORT}" --block; do sleep 5; done'


def variable(name: str) -> str:
    """A variable inside a word of the engine: every target has a form for it, the one that secrets have."""
    return secret_word(name)


def on_machine(plan: Plan, rank: str, leader: str) -> Plan:
    """The launch on one machine: `0` is the leader's rank, `leader` the word for its address."""
    if plan.ray:
        return _with_ray(plan, leader, leads=rank == "0")
    place = ("--nnodes", str(plan.nodes), "--node-rank", rank)
    if plan.engine == "sglang":
        return _adding(plan, (*place, "--dist-init-addr", f"{leader}:{SGLANG_PORT}"))
    return _adding(plan, (*place, "--master-addr", leader, *(() if rank == "0" else ("--headless",))))


def says_own_address(plan: Plan) -> bool:
    """Is the engine to be told the address of its machine?"""
    c = plan.container
    return plan.engine == "vllm" and OWN_ADDRESS not in {*c.env, *(secret.name for secret in c.secrets)}


def _adding(plan: Plan, words: Iterable[str]) -> Plan:
    return replace(plan, command=(*plan.command, *words))


def _with_ray(plan: Plan, leader: str, *, leads: bool) -> Plan:
    """The engine's words behind a shell that starts Ray first: images say `vllm serve` where a recipe says nothing."""
    entrypoint = plan.container.entrypoint
    program = (entrypoint,) if entrypoint else () if plan.launched_by else ("vllm", "serve")
    words = (_LEADER, "leader", leader, *program, *plan.command) if leads else (_WORKER, "worker", leader)
    return replace(plan, command=("-c", *words), container=replace(plan.container, entrypoint="/bin/bash"))
