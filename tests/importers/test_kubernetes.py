import re
from typing import Any

import pytest

from gb300serve.importers.kubernetes import docker_size, expand_variables
from gb300serve.importers.read import Choices
from tests.support.imports import messages, read, refusal

POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: lane}}
spec:
{spec}
  containers:
  - name: engine
    image: vllm/vllm-openai:v0.33.0
{container}
"""


def pod(container: str = "", spec: str = "") -> str:
    command = "" if re.search("(?m)^(args|command):", container) else "args: [--model, /m]\n"
    lines = "".join(f"    {line}\n" for line in (command + container).splitlines())
    return POD.format(spec="".join(f"  {line}\n" for line in spec.splitlines()), container=lines)


def section(container: str = "", spec: str = "", others: str = "") -> dict[str, Any]:
    """`container` of the recipe of a pod."""
    found: dict[str, Any] = read(pod(container, spec) + others, None, "pod.yaml").document["container"]
    return {key: value for key, value in found.items() if key != "name"}


def test_variables() -> None:
    assert expand_variables("$(A) $$(A) $(B) $$ $x $(", {"A": "1"}) == "1 $(A) $(B) $ $x $("


@pytest.mark.parametrize(
    ("quantity", "size"), [("16Gi", "16g"), ("512Mi", "512m"), ("16G", "16000000000"), ("1024", "1024"), ("x", "x")]
)
def test_quantities(quantity: str, size: str) -> None:
    assert docker_size(quantity) == size


def test_options() -> None:
    spec = """\
hostNetwork: true
hostIPC: true
hostPID: true
terminationGracePeriodSeconds: 45
securityContext: {runAsUser: 1000, runAsGroup: 1001, seccompProfile: {type: Unconfined}}
volumes:
- {name: m, hostPath: {path: /srv/models}}
- {name: t, emptyDir: {medium: Memory, sizeLimit: 1Gi}}
- {name: e, emptyDir: {}}
"""
    container = """\
workingDir: /w
securityContext: {capabilities: {add: [IPC_LOCK]}, allowPrivilegeEscalation: false}
resources: {limits: {nvidia.com/gpu: "1", memory: 64Gi}}
volumeMounts:
- {name: m, mountPath: /model, subPath: step, readOnly: true}
- {name: t, mountPath: /tmp}
- {name: e, mountPath: /scratch}
"""
    assert section(container, spec) == {
        "gpus": 1, "ipc": "host", "network": "host", "pid": "host", "stop_timeout": 45, "user": "1000:1001",
        "cap_add": ["IPC_LOCK"], "security_opt": ["no-new-privileges", "seccomp=unconfined"], "workdir": "/w",
        "memory": "64g", "tmpfs": ["/tmp:size=1g"],
        "mounts": [{"source": "/srv/models/step", "target": "/model", "read_only": True}],
    }  # fmt: skip


def test_shared_memory() -> None:
    mount = "volumeMounts: [{name: s, mountPath: /dev/shm}]"
    assert section(mount, "volumes: [{name: s, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]") == {"shm_size": "16g"}
    unlimited = read(pod(mount, "volumes: [{name: s, emptyDir: {medium: Memory}}]"), None, "pod.yaml")
    assert any("/dev/shm has no limit" in message for message in messages(unlimited))


def test_the_environment() -> None:
    container = """\
envFrom: [{configMapRef: {name: cfg}}]
env:
- {name: A, value: "1"}
- {name: B, value: "$(A)-$(X)-$$(A)-$(NONE)"}
- {name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}
- {name: C, valueFrom: {configMapKeyRef: {name: cfg, key: X}}}
args: [--model, /m, --served-model-name, "$(A)", --api-key, $(KEY)]
"""
    others = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cfg}\ndata: {X: x}\n"
    found = read(pod(container) + others, None, "pod.yaml")
    assert found.document["container"]["env"] == {"X": "x", "A": "1", "B": "1-x-$(A)-$(NONE)", "C": "x"}
    assert found.document["container"]["secrets"] == {"KEY": {"env": "KEY"}}
    assert found.plan.command == ("--model", "/m", "--served-model-name", "1", "--api-key", "${secret:KEY}")


def test_ports_are_those_of_the_service_in_front() -> None:
    service = """\
---
apiVersion: v1
kind: Service
metadata: {name: x}
spec: {selector: {app: a}, ports: [{port: 80, targetPort: http}]}
"""
    container = "ports: [{containerPort: 8000, name: http}, {containerPort: 9000}]"
    labelled = pod(container).replace("metadata: {name: lane}", "metadata: {name: lane, labels: {app: a}}")
    found = read(labelled + service, None, "pod.yaml").document["container"]
    assert found["ports"] == ["80:8000", "9000:9000"]


def test_command_and_args() -> None:
    plan = read(pod("command: [vllm, serve]\nargs: [/m, --port, '80']"), None, "pod.yaml").plan
    assert (plan.container.entrypoint, plan.command) == ("vllm", ("serve", "/m", "--port", "80"))
    shell = "command: [/bin/sh, -c]\nargs: ['vllm serve /m --api-key $KEY']\n"
    shell += "env: [{name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}]"
    plan = read(pod(shell), None, "pod.yaml").plan
    assert plan.command == ("serve", "/m", "--api-key", "${secret:KEY}")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "Job"])
def test_workloads(kind: str) -> None:
    engine = "{name: e, image: 'vllm/vllm-openai:1', args: [--model, /m]}"
    template = f"{{spec: {{containers: [{{name: side, image: nginx}}, {engine}]}}}}"
    text = f"apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: lane}}\nspec: {{replicas: 2, template: {template}}}\n"
    found = read(text, None, "x.yaml")
    assert found.document["container"]["name"] == "lane"
    assert messages(found) == ["IMP003 a recipe cannot express several replicas"]


LWS = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: big}
spec:
  leaderWorkerTemplate:
    size: 2
    leaderTemplate:
      spec:
        containers:
        - name: leader
          image: lmsysorg/sglang:v0.5.22
          command: [python3, -m, sglang.launch_server, --model-path, /m, --tp-size, "2", --nnodes, $(LWS_GROUP_SIZE)]
          args: [--node-rank, $(LWS_WORKER_INDEX), --dist-init-addr, "$(LWS_LEADER_ADDRESS):20000"]
    workerTemplate: {spec: {containers: [{name: worker, image: lmsysorg/sglang:v0.5.22}]}}
"""


def test_a_group_of_pods() -> None:
    found = read(LWS, None, "lws.yaml")
    assert found.plan.nodes == 2
    assert found.document["engine"]["options"] == {"model_path": "/m", "tp_size": 2}
    assert messages(found) == []


RAY = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: wide}
spec:
  leaderWorkerTemplate:
    size: 3
    leaderTemplate:
      spec:
        containers:
        - name: head
          image: vllm/vllm-openai:v0.33.0
          command: [sh, -c]
          args: ["ray start --head --port 6379; vllm serve /m --tensor-parallel-size 3"]
"""
WORKERS = """\
    workerTemplate:
      spec: {containers: [{name: w, image: "vllm/vllm-openai:v0.33.0", command: [sh, -c, "ray start --block"]}]}
"""


def test_a_leader_that_starts_ray() -> None:
    found = read(RAY + WORKERS, None, "x.yaml")
    assert (found.plan.nodes, messages(found)) == (3, [])
    assert "has 3 pods, and the file does not contain the workers" in refusal(RAY, "x.yaml")
    assert "size: `$N` is not a number" in refusal(RAY.replace("size: 3", "size: $N") + WORKERS, "x.yaml")
    other = read(RAY + WORKERS.replace("v0.33.0", "v0.32.0"), None, "x.yaml")
    assert messages(other) == ["IMP003 a recipe cannot express another image for the workers"]


def test_ray_on_an_unknown_number_of_machines() -> None:
    container = "command: [sh, -c]\nargs: ['ray start --head; vllm serve /m']"
    assert "starts Ray for several machines" in refusal(pod(container), "x.yaml")


@pytest.mark.parametrize("arguments", ["", "args: []", "command: []\nargs: []"])
def test_a_container_without_a_command(arguments: str) -> None:
    text = pod("args: []").replace("    args: []\n", "".join(f"    {line}\n" for line in arguments.splitlines()))
    assert "the container has no command, so nothing names the model" in refusal(text, "x.yaml")


def test_a_list_and_json() -> None:
    spec = '{"containers": [{"image": "a/vllm:1"}]}'
    item = f'{{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "p1"}}, "spec": {spec}}}'
    assert read(item, None, "x.json").document["container"]["name"] == "p1"
    assert read(f"apiVersion: v1\nkind: List\nitems: [{item}]\n", None, "x.yaml").document["lane"] == "p1"


def test_a_claim_on_a_local_volume() -> None:
    others = """\
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv}
spec: {local: {path: /srv/pv}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim}
spec: {volumeName: pv}
"""
    spec = "volumes: [{name: m, persistentVolumeClaim: {claimName: claim}}]"
    mount = "volumeMounts: [{name: m, mountPath: /m}]"
    assert section(mount, spec, others) == {"mounts": [{"source": "/srv/pv", "target": "/m"}]}
    found = read(pod(mount, spec), None, "x.yaml")
    assert found.document["container"]["mounts"] == [{"volume": "claim", "target": "/m"}]
    assert "the claim claim became the Docker volume of that name, which is empty" in messages(found)[0]


def test_what_a_recipe_cannot_express_is_reported() -> None:
    container = "lifecycle: {preStop: {exec: {command: [x]}}}\nenv: [{name: IP, valueFrom: {fieldRef: {fieldPath: a}}}]"
    found = read(pod(container, "initContainers: [{name: i}]\nruntimeFoo: 1"), None, "pod.yaml")
    assert [message.partition("express ")[2] for message in messages(found)] == [
        "the variable IP, whose value only the cluster knows",
        "`lifecycle` of a container",
        "init containers, which run before the engine",
        "`runtimeFoo` of a pod",
    ]


def test_secrets_of_the_file_stay_hidden() -> None:
    others = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: Winter2031}\n"
    found = read(pod("args: [--model, Winter2031x]") + others, None, "pod.yaml")
    assert not any("Winter2031" in finding.message for finding in found.diagnostics)


def test_refusals() -> None:
    two = pod() + "---\n" + pod().replace("name: lane", "name: other")
    assert "several containers could be the launch: lane/engine, other/engine" in refusal(two, "x.yaml")
    assert read(two, None, "x.yaml", Choices(service="other")).document["container"]["name"] == "other"
    assert "template of Helm" in refusal("apiVersion: v1\nkind: Pod\n{{- if .Values.x }}\n", "x.yaml")
    assert "no pod that runs an engine: Service" in refusal("apiVersion: v1\nkind: Service\n", "x.yaml")
    assert "not valid YAML" in refusal("apiVersion: v1\nkind: [\n", "x.yaml")


def test_privileges_groups_and_hosts() -> None:
    spec = "securityContext: {supplementalGroups: [109]}\nhostAliases: [{ip: 10.0.0.5, hostnames: [db, models]}]"
    assert section("securityContext: {privileged: true}", spec) == {
        "privileged": True, "group_add": ["109"], "add_host": ["db:10.0.0.5", "models:10.0.0.5"],
    }  # fmt: skip


def test_a_pod_that_runs_something_else() -> None:
    assert "the container runs `sleep infinity`" in refusal(pod("command: [sleep, infinity]"), "pod.yaml")
