"""Plan → a Deployment (over several Stations: a LeaderWorkerSet) and a Service for Kubernetes."""

import re
from typing import Any

from gb300serve.plan.compile import node_plan, own_address_variable, variable
from gb300serve.plan.model import ContainerPlan, Plan, Secret, split_port
from gb300serve.render.kubernetes.gaps import kubernetes_gaps
from gb300serve.render.kubernetes.probes import probes
from gb300serve.render.kubernetes.volumes import Volume, annotations, object_name, parse_user_ids, pod_volumes, quantity
from gb300serve.render.target import Rendered, TargetService, file_header, substitute_secrets, yaml_text

Object = dict[str, Any]

LEADER, RANK = "LWS_LEADER_ADDRESS", "LWS_WORKER_INDEX"
VARIABLES = frozenset({LEADER, RANK})
_SET, _INDEX = "leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/worker-index"


def pod_plans(plan: Plan) -> tuple[Plan, Plan]:
    """The launches of the leader's pod and of every worker's."""
    leader = variable(LEADER)
    return node_plan(plan, "0", leader), node_plan(plan, variable(RANK), leader)


def leader_selector(name: str) -> Object:
    """The selector of the pod that serves clients."""
    return {_SET: name, _INDEX: "0"}


def address_variable(plan: Plan) -> list[Object]:
    """The variable with the pod's address; it must precede the variables that use it."""
    name = own_address_variable(plan)
    if plan.nodes == 1 or name is None:
        return []
    return [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]


def leader_worker_set(plan: Plan, name: str, leader: Object, worker: Object) -> Object:
    """One group of pods: an engine that loses a machine cannot serve, so all pods are recreated together."""
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


# Seconds, on top of the boot: the default deadline of Kubernetes for a rollout without progress.
_ROLLOUT_DEADLINE = 600


def kubernetes(plan: Plan, service: TargetService) -> Rendered:
    """One pod at a time, because there is one GPU, and the Service in front of it."""
    gaps = kubernetes_gaps(plan)
    name = object_name(plan)
    start = (f"Start it with `kubectl apply -f THIS-FILE`; watch it with `kubectl logs -f deployment/{name}`.",)
    if plan.nodes > 1:
        start = (f"It needs the LeaderWorkerSet API; watch it with `kubectl logs -f {name}-0`.",)
        documents = (_pod_group(plan, service, name), _service(plan, service, name, leader_selector(name)))
    else:
        documents = (_deployment(plan, service, name), _service(plan, service, name, _selector(name)))
    return Rendered(
        file_header(plan, "Kubernetes objects", start, gaps) + "---\n".join(map(yaml_text, documents)), gaps
    )


def _selector(name: str) -> Object:
    return {"app.kubernetes.io/name": name}


def _pod_group(plan: Plan, service: TargetService, name: str) -> Object:
    leader, worker = pod_plans(plan)
    pods = (_pod(leader, service), _pod(worker, service, serves=False))
    return leader_worker_set(plan, name, *(_template(plan, name, pod) for pod in pods))


def _template(plan: Plan, name: str, pod: Object) -> Object:
    metadata = _without_empty({"labels": _selector(name), "annotations": annotations(plan.container)})
    return {"metadata": metadata, "spec": pod}


def _deployment(plan: Plan, service: TargetService, name: str) -> Object:
    selector = _selector(name)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": selector},
        "spec": {
            "replicas": 1,
            # The GPU holds one engine: the new pod starts after the old one has ended.
            "strategy": {"type": "Recreate"},
            "progressDeadlineSeconds": service.patience + _ROLLOUT_DEADLINE,
            "selector": {"matchLabels": selector},
            "template": _template(plan, name, _pod(plan, service)),
        },
    }


def _without_empty(values: Object) -> Object:
    return {key: value for key, value in values.items() if value not in (None, {}, [], "", False)}


def _pod(plan: Plan, service: TargetService, *, serves: bool = True) -> Object:
    c = plan.container
    volumes = pod_volumes(plan)
    section: Object = {"hostIPC": True} if c.ipc == "host" else {}
    if c.network == "host":
        section |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    if c.pid == "host":
        section["hostPID"] = True
    # A Service named vllm would set VLLM_PORT in the pod, which the engine reads as its own setting.
    section |= {"enableServiceLinks": False, "automountServiceAccountToken": False}
    if c.stop_timeout is not None:
        section["terminationGracePeriodSeconds"] = c.stop_timeout
    served: Object = {"ports": _ports(plan, service), **probes(c, service)} if serves else {}
    section["containers"] = [_container(plan, served, volumes)]
    return section | ({"volumes": [volume.source for volume in volumes]} if volumes else {})


def _container(plan: Plan, served: Object, volumes: tuple[Volume, ...]) -> Object:
    """`served`: the ports and probes of the container that serves clients."""
    c = plan.container
    env = [*({"name": k, "value": _literal(v)} for k, v in c.env.items()), *map(_secret(plan), c.secrets)]
    return _without_empty(
        {
            "name": plan.engine,
            "image": plan.image,
            "command": [_literal(c.entrypoint)] if c.entrypoint else None,
            "args": _args(plan),
            "workingDir": c.workdir,
            "env": [*address_variable(plan), *env],
            "ports": served.get("ports"),
            "resources": _resources(c),
            "securityContext": _security_context(c),
            "volumeMounts": [volume.mount for volume in volumes],
            **served,
        }
    )


def _literal(text: str) -> str:
    """Kubernetes replaces `$(NAME)`; `$$` is a literal `$`."""
    return text.replace("$", "$$")


def _args(plan: Plan) -> list[str]:
    secrets = {secret.name for secret in plan.container.secrets} | (VARIABLES if plan.nodes > 1 else set())
    return [substitute_secrets(word, "$({})".format, _literal, secrets) for word in plan.command]


def _secret(plan: Plan) -> Any:
    store = f"{object_name(plan)}-secrets"

    def reference(secret: Secret) -> Object:
        return {"name": secret.name, "valueFrom": {"secretKeyRef": {"name": store, "key": secret.name}}}

    return reference


def _ports(plan: Plan, service: TargetService) -> list[Object]:
    """The engine's port, then the other published ports; on the host's network also as host ports."""
    others = (split_port(word) for word in plan.container.ports)
    inside = [port for _, port in others if port is not None and port != service.port]
    names = {service.port: "http"}
    return [_port(port, names.get(port), plan.container) for port in dict.fromkeys((service.port, *inside))]


def _port(port: int, name: str | None, c: ContainerPlan) -> Object:
    return _without_empty(
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


def _security_context(c: ContainerPlan) -> Object:
    user, group = parse_user_ids(c.user)
    section: Object = {}
    if c.cap_add:
        section["capabilities"] = {"add": [re.sub("^CAP_", "", name.upper()) for name in c.cap_add]}
    if any(re.fullmatch(r"no-new-privileges(?:[:=]true)?", option) for option in c.security_opt):
        section["allowPrivilegeEscalation"] = False
    if any(re.fullmatch(r"seccomp[:=]unconfined", option) for option in c.security_opt):
        section["seccompProfile"] = {"type": "Unconfined"}
    if user is not None:
        section["runAsUser"] = user
    return section | ({"runAsGroup": group} if group is not None else {})


def _service(plan: Plan, service: TargetService, name: str, selector: Object) -> Object:
    ports = [(plan.port or service.port, service.port, "http")]
    for word in plan.container.ports:
        outside, inside = split_port(word)
        if inside is not None and inside != service.port:
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
