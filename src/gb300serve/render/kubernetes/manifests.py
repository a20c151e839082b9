"""Plan → a Deployment and a Service for Kubernetes. Pure."""

import math
import re
from typing import Any

from gb300serve.plan.compile import on_machine, own_address_variable, variable
from gb300serve.plan.model import ContainerPlan, Plan, Secret, split_port
from gb300serve.render.kubernetes.gaps import gaps_of
from gb300serve.render.kubernetes.volumes import Volume, annotations, object_name, quantity, user_ids, volumes
from gb300serve.render.target import HEALTH_PATH, Rendered, TargetService, head, with_secrets, yaml_text

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
    name = own_address_variable(plan)
    if plan.nodes == 1 or name is None:
        return []
    return [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]


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


# Seconds between two questions of a probe while the engine boots, and while it serves.
_BOOT_PERIOD = 30
_SERVE_PERIOD = 10
# Kubernetes reports a rollout without progress after 600 s; a boot alone may take longer.
_ROLLOUT = 600


def kubernetes(plan: Plan, serving: TargetService) -> Rendered:
    """Two documents: one pod at a time, because there is one GPU, and the Service that leads to it."""
    gaps = gaps_of(plan)
    name = object_name(plan)
    start = (f"Start it with `kubectl apply -f THIS-FILE`; watch it with `kubectl logs -f deployment/{name}`.",)
    if plan.nodes > 1:
        start = (f"It needs the LeaderWorkerSet API; watch it with `kubectl logs -f {name}-0`.",)
        documents = (_set(plan, serving, name), _service(plan, serving, name, leads(name)))
    else:
        documents = (_deployment(plan, serving, name), _service(plan, serving, name, _selector(name)))
    return Rendered(head(plan, "Kubernetes objects", start, gaps) + "---\n".join(map(yaml_text, documents)), gaps)


def _selector(name: str) -> Object:
    return {"app.kubernetes.io/name": name}


def _set(plan: Plan, serving: TargetService, name: str) -> Object:
    leader, worker = machines(plan)
    pods = (_pod(leader, serving), _pod(worker, serving, serves=False))
    return leader_worker_set(plan, name, *(_template(plan, name, pod) for pod in pods))


def _template(plan: Plan, name: str, pod: Object) -> Object:
    marks = _without_nothing({"labels": _selector(name), "annotations": annotations(plan.container)})
    return {"metadata": marks, "spec": pod}


def _deployment(plan: Plan, serving: TargetService, name: str) -> Object:
    selector = _selector(name)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": selector},
        "spec": {
            "replicas": 1,
            # The GPU holds one engine: the next one starts when this one has gone.
            "strategy": {"type": "Recreate"},
            "progressDeadlineSeconds": serving.patience + _ROLLOUT,
            "selector": {"matchLabels": selector},
            "template": _template(plan, name, _pod(plan, serving)),
        },
    }


def _without_nothing(values: Object) -> Object:
    return {key: value for key, value in values.items() if value not in (None, {}, [], "", False)}


def _pod(plan: Plan, serving: TargetService, *, serves: bool = True) -> Object:
    c = plan.container
    found = volumes(plan)
    said: Object = _without_nothing(
        {
            "hostIPC": c.ipc == "host",
            "hostNetwork": c.network == "host",
            "dnsPolicy": "ClusterFirstWithHostNet" if c.network == "host" else None,
            "hostPID": c.pid == "host",
        }
    )
    # A Service named vllm would put VLLM_PORT into the engine's environment, which it takes for its own setting.
    said |= {"enableServiceLinks": False, "automountServiceAccountToken": False}
    if c.stop_timeout is not None:
        said["terminationGracePeriodSeconds"] = c.stop_timeout
    served: Object = {"ports": _ports(plan, serving), **_probes(c, serving)} if serves else {}
    said["containers"] = [_container(plan, served, found)]
    return said | ({"volumes": [volume.source for volume in found]} if found else {})


def _container(plan: Plan, served: Object, found: tuple[Volume, ...]) -> Object:
    """`served`: its ports and probes, where it answers clients."""
    c = plan.container
    env = [*({"name": k, "value": _literal(v)} for k, v in c.env.items()), *map(_secret(plan), c.secrets)]
    return _without_nothing(
        {
            "name": plan.engine,
            "image": plan.image,
            "command": [_literal(c.entrypoint)] if c.entrypoint else None,
            "args": _args(plan),
            "workingDir": c.workdir,
            "env": [*own_address(plan), *env],
            "ports": served.get("ports"),
            "resources": _resources(c),
            "securityContext": _security(c),
            "volumeMounts": [volume.mount for volume in found],
            **served,
        }
    )


def _literal(text: str) -> str:
    """`$(NAME)` would be replaced, and `$$` is one `$`."""
    return text.replace("$", "$$")


def _args(plan: Plan) -> list[str]:
    secrets = {secret.name for secret in plan.container.secrets} | (VARIABLES if plan.nodes > 1 else set())
    return [with_secrets(word, "$({})".format, _literal, secrets) for word in plan.command]


def _secret(plan: Plan) -> Any:
    store = f"{object_name(plan)}-secrets"

    def reference(secret: Secret) -> Object:
        return {"name": secret.name, "valueFrom": {"secretKeyRef": {"name": store, "key": secret.name}}}

    return reference


def _ports(plan: Plan, serving: TargetService) -> list[Object]:
    """The engine's port first, then what else is published; on the host's network they are the host's own."""
    others = (split_port(word) for word in plan.container.ports)
    inside = [port for _, port in others if port is not None and port != serving.port]
    names = {serving.port: "http"}
    return [_port(port, names.get(port), plan.container) for port in dict.fromkeys((serving.port, *inside))]


def _port(port: int, name: str | None, c: ContainerPlan) -> Object:
    return _without_nothing(
        {"name": name, "containerPort": port, "hostPort": port if c.network == "host" else None, "protocol": "TCP"}
    )


def _resources(c: ContainerPlan) -> Object:
    limits: Object = {}
    if c.memory and (memory := quantity(c.memory)):
        limits["memory"] = memory
    if c.gpus:
        chosen = c.gpus.removeprefix("device=").split(",")
        limits["nvidia.com/gpu"] = int(c.gpus) if c.gpus.isdecimal() else len(chosen)
    return {"limits": limits} if limits else {}


def _security(c: ContainerPlan) -> Object:
    user, group = user_ids(c.user)
    said: Object = {}
    if c.cap_add:
        said["capabilities"] = {"add": [re.sub("^CAP_", "", name.upper()) for name in c.cap_add]}
    if any(re.fullmatch(r"no-new-privileges(?:[:=]true)?", option) for option in c.security_opt):
        said["allowPrivilegeEscalation"] = False
    if any(re.fullmatch(r"seccomp[:=]unconfined", option) for option in c.security_opt):
        said["seccompProfile"] = {"type": "Unconfined"}
    if user is not None:
        said["runAsUser"] = user
    return said | ({"runAsGroup": group} if group is not None else {})


def _probes(c: ContainerPlan, serving: TargetService) -> Object:
    ask = {"httpGet": {"path": HEALTH_PATH, "port": serving.port}, "timeoutSeconds": 5}
    failures = math.ceil(serving.patience / _BOOT_PERIOD)
    said: Object = {
        "startupProbe": {**ask, "periodSeconds": _BOOT_PERIOD, "failureThreshold": failures},
        "readinessProbe": {**ask, "periodSeconds": _SERVE_PERIOD, "failureThreshold": 3},
    }
    if c.restart in ("always", "unless-stopped"):
        # Five minutes without an answer: a restart costs a boot, so a busy engine must not look like a dead one.
        said["livenessProbe"] = {**ask, "periodSeconds": _SERVE_PERIOD, "failureThreshold": 30}
    return said


def _service(plan: Plan, serving: TargetService, name: str, selector: Object) -> Object:
    ports = [(plan.port or serving.port, serving.port, "http")]
    for word in plan.container.ports:
        outside, inside = split_port(word)
        if inside is not None and inside != serving.port:
            ports.append((outside or inside, inside, f"port-{inside}"))
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": _selector(name)},
        "spec": {
            "selector": selector,
            "ports": [{"name": n, "port": o, "targetPort": i, "protocol": "TCP"} for o, i, n in dict.fromkeys(ports)],
        },
    }
