"""Plan → a Deployment (over several Stations: a LeaderWorkerSet) and a Service for Kubernetes."""

import math
import re
from typing import Any

from gb300serve.plan.compile import node_plan, own_address_variable, variable
from gb300serve.plan.model import ContainerPlan, HealthCheck, Plan, Secret, duration_seconds, split_port
from gb300serve.render.kubernetes.volumes import (
    Volume,
    annotations,
    host_alias,
    kubernetes_gaps,
    object_name,
    parse_user_ids,
    pod_volumes,
    quantity,
)
from gb300serve.render.target import (
    HEALTH_PATH,
    Rendered,
    TargetService,
    double_dollars,
    file_header,
    substitute_secrets,
    yaml_text,
)

Object = dict[str, Any]

LEADER, RANK = "LWS_LEADER_ADDRESS", "LWS_WORKER_INDEX"
_SET, _INDEX = "leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/worker-index"


# Seconds, on top of the boot: the default deadline of Kubernetes for a rollout without progress.
_ROLLOUT_DEADLINE = 600
# Seconds between two requests of a probe.
_STARTUP_PERIOD, _PERIOD = 30, 10


def kubernetes(plan: Plan, service: TargetService) -> Rendered:
    """One pod at a time, because there is one GPU, and the Service in front of it."""
    gaps = kubernetes_gaps(plan)
    name = object_name(plan)
    start = (f"Start it with `kubectl apply -f THIS-FILE`; watch it with `kubectl logs -f deployment/{name}`.",)
    if plan.nodes > 1:
        start = (f"It needs the LeaderWorkerSet API; watch it with `kubectl logs -f {name}-0`.",)
        documents = (_pod_group(plan, service, name), _service(plan, service, name, {_SET: name, _INDEX: "0"}))
    else:
        documents = (_deployment(plan, service, name), _service(plan, service, name, _selector(name)))
    text = "---\n".join(map(yaml_text, documents))
    return Rendered(file_header(plan, "Kubernetes objects", start, gaps) + text, gaps)


def _selector(name: str) -> Object:
    return {"app.kubernetes.io/name": name}


def _pod_group(plan: Plan, service: TargetService, name: str) -> Object:
    """One group of pods: an engine that loses a machine cannot serve, so all pods are recreated together."""
    address = variable(LEADER)
    leader = _pod(node_plan(plan, "0", address), service)
    worker = _pod(node_plan(plan, variable(RANK), address), service, serves=False)
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "labels": _selector(name)},
        "spec": {
            "replicas": 1,
            "leaderWorkerTemplate": {
                "size": plan.nodes,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": _template(plan, name, leader),
                "workerTemplate": _template(plan, name, worker),
            },
        },
    }


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
    if aliases := list(filter(None, map(host_alias, c.add_host))):
        section["hostAliases"] = aliases
    if groups := [int(group) for group in c.group_add if group.isdecimal()]:
        section["securityContext"] = {"supplementalGroups": groups}
    if c.stop_timeout is not None:
        section["terminationGracePeriodSeconds"] = c.stop_timeout
    served: Object = {"ports": _ports(plan, service), **_probes(c, service)} if serves else {}
    section["containers"] = [_container(plan, served, volumes)]
    return section | ({"volumes": [volume.source for volume in volumes]} if volumes else {})


def _probes(container: ContainerPlan, service: TargetService) -> Object:
    """The startup probe has the patience of `TargetService`; a liveness probe only where the recipe wants restarts."""
    probes = {"startupProbe": (_STARTUP_PERIOD, math.ceil(service.patience / _STARTUP_PERIOD))}
    probes["readinessProbe"] = (_PERIOD, 3)
    if container.restart in ("always", "unless-stopped"):
        # A restart costs a boot: a busy engine gets five minutes before it counts as dead.
        probes["livenessProbe"] = (_PERIOD, 30)
    request = {"httpGet": {"path": HEALTH_PATH, "port": service.port}, "timeoutSeconds": 5}
    found: Object = {
        name: {**request, "periodSeconds": period, "failureThreshold": failures}
        for name, (period, failures) in probes.items()
    }
    check = container.healthcheck
    if check is not None and check.test:
        found["readinessProbe"] = {"exec": {"command": ["/bin/sh", "-c", check.test]}} | _probe_times(check)
    return found


def _probe_times(check: HealthCheck) -> Object:
    """Docker's defaults are 30 s and 3 failures; Kubernetes takes whole seconds."""
    period, timeout = (math.ceil(duration_seconds(text or "30s")) for text in (check.interval, check.timeout))
    return {"timeoutSeconds": max(1, timeout), "periodSeconds": max(1, period), "failureThreshold": check.retries or 3}


def _container(plan: Plan, served: Object, volumes: tuple[Volume, ...]) -> Object:
    """`served`: the ports and probes of the container that serves clients."""
    c = plan.container
    # The variable with the pod's address must precede the variables that use it.
    address = own_address_variable(plan) if plan.nodes > 1 else None
    env: list[Object] = [{"name": address, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}] if address else []
    env += [{"name": name, "value": double_dollars(value)} for name, value in c.env.items()]
    env += [_secret(plan, secret) for secret in c.secrets]
    return _without_empty(
        {
            "name": plan.engine,
            "image": plan.image,
            "command": [double_dollars(c.entrypoint)] if c.entrypoint else None,
            "args": _args(plan),
            "workingDir": c.workdir,
            "env": env,
            "ports": served.get("ports"),
            "resources": _resources(c),
            "securityContext": _security_context(c),
            "volumeMounts": [volume.mount for volume in volumes],
            **served,
        }
    )


def _args(plan: Plan) -> list[str]:
    secrets = {secret.name for secret in plan.container.secrets} | ({LEADER, RANK} if plan.nodes > 1 else set())
    return [substitute_secrets(word, "$({})".format, double_dollars, secrets) for word in plan.command]


def _secret(plan: Plan, secret: Secret) -> Object:
    reference = {"name": f"{object_name(plan)}-secrets", "key": secret.name}
    return {"name": secret.name, "valueFrom": {"secretKeyRef": reference}}


def _ports(plan: Plan, service: TargetService) -> list[Object]:
    """The engine's port, then the other published ports; on the host's network also as host ports."""
    others = (split_port(word) for word in plan.container.ports)
    inside = [port for _, port in others if port is not None and port != service.port]
    names = {service.port: "http"}
    return [_port(port, names.get(port), plan.container) for port in dict.fromkeys((service.port, *inside))]


def _port(port: int, name: str | None, c: ContainerPlan) -> Object:
    host_port = port if c.network == "host" else None
    return _without_empty({"name": name, "containerPort": port, "hostPort": host_port, "protocol": "TCP"})


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
    section: Object = {"privileged": True} if c.privileged else {}
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
