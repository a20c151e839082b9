"""A model over several machines as a LeaderWorkerSet, one pod a machine. Pure.

https://lws.sigs.k8s.io/docs/reference/leaderworkerset.v1/: its controller gives every container LWS_LEADER_ADDRESS and
LWS_WORKER_INDEX, and labels the pods.
"""

from typing import Any

from gb300serve.plan.model import Plan
from gb300serve.plan.nodes import OWN_ADDRESS, on_machine, says_own_address, variable

Object = dict[str, Any]

LEADER, RANK = "LWS_LEADER_ADDRESS", "LWS_WORKER_INDEX"
VARIABLES = frozenset({LEADER, RANK})
_SET, _INDEX = "leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/worker-index"


def machines(plan: Plan) -> tuple[Plan, Plan]:
    """The launches of the leader's pod and of every worker's."""
    leader = variable(LEADER)
    return on_machine(plan, "0", leader), on_machine(plan, variable(RANK), leader)


def leads(name: str) -> Object:
    """What selects the pod that answers clients."""
    return {_SET: name, _INDEX: "0"}


def own_address(plan: Plan) -> list[Object]:
    """The pod's address, in front of the other variables."""
    if plan.nodes == 1 or not says_own_address(plan):
        return []
    return [{"name": OWN_ADDRESS, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]


def leader_worker_set(plan: Plan, name: str, leader: Object, worker: Object) -> Object:
    """One group of pods: an engine that has lost a machine is of no use, so all of them start anew together."""
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": name}},
        "spec": {
            "replicas": 1,
            "leaderWorkerTemplate": {
                "size": plan.nodes,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": leader,
                "workerTemplate": worker,
            },
        },
    }
