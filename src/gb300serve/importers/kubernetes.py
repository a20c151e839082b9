"""Kubernetes manifests: the container that runs an engine, as options of `docker run`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from posixpath import join
from typing import Any, NamedTuple

from gb300serve.document.nodes import MapNode, Source
from gb300serve.document.read import parse_foreign
from gb300serve.engines.registry import ENGINES
from gb300serve.importers.docker_arguments import DockerOption
from gb300serve.importers.draft import Draft
from gb300serve.importers.inspected import as_list, as_mapping, scalar_text
from gb300serve.importers.launcher import names_engine
from gb300serve.importers.recipe import ImportedRecipe, from_parts
from gb300serve.importers.report import (
    LEFT_OUT,
    NOT_TAKEN_OVER,
    REFUSED_VALUE,
    SPELLING,
    START,
    SourceInvalidError,
    TextPosition,
    UnresolvedError,
    place_of_key,
    shorten,
)
from gb300serve.importers.shell.words import ExpandedWord
from gb300serve.plan.compile import ray_program

_SET = "LeaderWorkerSet"
_TEMPLATED = frozenset(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job"))
_LOST = "the imported launch runs without it"
_GPU = "nvidia.com/gpu"
_VARIABLE = re.compile(r"\$(?:(\$)|\(([^()$]{0,253})\))")


def expand_variables(text: str, values: Mapping[str, str]) -> str:
    """`$(NAME)` for the variables of `values`, `$$` as `$`; other text, also `$(UNKNOWN)`, stays as it is."""
    return _VARIABLE.sub(lambda match: "$" if match[1] else values.get(match[2], match[0]), text)


class _Workload(NamedTuple):
    """A workload, the template of its pods, and one of its containers."""

    document: MapNode
    template: dict[str, Any]
    container: dict[str, Any]

    @property
    def name(self) -> str:
        return _name(self.document)

    @property
    def label(self) -> str:
        return f"{self.name}/{scalar_text(self.container.get('name'))}"


def from_kubernetes(text: str, draft: Draft, wanted: str | None) -> ImportedRecipe:
    """The recipe of a container: the one that runs an engine, or that of the workload or container `wanted`."""
    name = draft.report.file or "-"
    documents, problem = parse_foreign(Source(name, text))
    if problem is not None:
        hint = "`kubectl apply --dry-run=client` checks the file; render a Helm chart with `helm template` first"
        raise SourceInvalidError(f"{name} is not valid YAML", hint=hint, diagnostics=(problem,))
    objects = [item for document in documents for item in _items(document)]
    for secret in objects:
        if secret.get("kind") == "Secret":
            for value in as_mapping(secret.get("stringData")).values():
                draft.report.hide(scalar_text(value))
    workloads = [workload for document in objects for workload in _workloads(document)]
    return _Pod(_choose(workloads, objects, draft, wanted), objects, draft).read()


def _items(document: Any) -> Iterator[MapNode]:
    """The objects of a document, also of a `List`."""
    if isinstance(document, MapNode):
        if document.get("kind") == "List":
            yield from (item for item in as_list(document.get("items")) if isinstance(item, MapNode))
        else:
            yield document


def _workloads(document: MapNode) -> Iterator[_Workload]:
    spec, kind = as_mapping(document.get("spec")), document.get("kind")
    template = document if kind == "Pod" else as_mapping(spec.get("template")) if kind in _TEMPLATED else {}
    if kind == _SET:
        group = as_mapping(spec.get("leaderWorkerTemplate"))
        template = as_mapping(group.get("leaderTemplate") or group.get("workerTemplate"))
    for container in as_list(as_mapping(template.get("spec")).get("containers")):
        yield _Workload(document, template, as_mapping(container))


def _choose(workloads: list[_Workload], objects: list[MapNode], draft: Draft, wanted: str | None) -> _Workload:
    if not workloads:
        kinds = ", ".join(dict.fromkeys(scalar_text(item.get("kind")) for item in objects)) or "no object"
        hint = "import a Deployment, StatefulSet, Pod or LeaderWorkerSet, or write the launch as `docker run`"
        raise UnresolvedError(f"the file describes no pod that runs an engine: {shorten(kinds)}", None, hint)
    chosen = [w for w in workloads if _runs_engine(w)] or workloads
    if wanted is not None:
        chosen = [w for w in workloads if wanted in (w.name, w.label, w.container.get("name"))]
        chosen = [w for w in chosen if _runs_engine(w)] or chosen
    labels = shorten(", ".join(w.label for w in (chosen or workloads)), 200)
    if not chosen:
        raise UnresolvedError(f"the file has no container {shorten(wanted or '')}", None, f"containers: {labels}")
    if len(chosen) > 1:
        place = place_of_key(chosen[0].container, "name")
        raise UnresolvedError(f"several containers could be the launch: {labels}", place, "choose one: --service NAME")
    if others := [w.label for w in workloads if w is not chosen[0]]:
        message = f"other containers are not part of the launch: {shorten(', '.join(others), 200)}"
        draft.report.add(LEFT_OUT, message, None, place_of_key(chosen[0].container, "name"))
    return chosen[0]


def _runs_engine(workload: _Workload) -> bool:
    words = [scalar_text(word) for key in ("command", "args") for word in as_list(workload.container.get(key))]
    return names_engine(scalar_text(workload.container.get("image")), words)


def _name(item: MapNode) -> str:
    return scalar_text(as_mapping(item.get("metadata")).get("name"))


def _claimed_paths(objects: list[MapNode]) -> Iterator[tuple[str, str]]:
    """The claims that name a local volume, or that such a volume names, with its directory."""
    paths: dict[str, str] = {}
    for item in objects:
        spec = as_mapping(item.get("spec"))
        path = scalar_text(as_mapping(spec.get("hostPath") or spec.get("local")).get("path"))
        if item.get("kind") == "PersistentVolume" and path:
            paths[_name(item)] = path
            yield scalar_text(as_mapping(spec.get("claimRef")).get("name")), path
    for item in objects:
        volume = scalar_text(as_mapping(item.get("spec")).get("volumeName"))
        if item.get("kind") == "PersistentVolumeClaim" and volume in paths:
            yield _name(item), paths[volume]


# Parts of a pod that decide where and when it runs, not what it runs.
_SCHEDULING = frozenset((
    "affinity", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "enableServiceLinks", "hostname",
    "imagePullSecrets", "nodeName", "nodeSelector", "preemptionPolicy", "priority", "priorityClassName",
    "restartPolicy", "schedulerName", "serviceAccount", "serviceAccountName", "subdomain", "tolerations",
    "topologySpreadConstraints",
))  # fmt: skip
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")
_READ_SPEC = frozenset((
    "containers", "hostAliases", "hostIPC", "hostNetwork", "hostPID", "runtimeClassName", "securityContext",
    "terminationGracePeriodSeconds", "volumes",
))  # fmt: skip
_READ_CONTAINER = frozenset((
    "args", "command", "env", "envFrom", "image", "name", "ports", "resources", "securityContext", "volumeMounts",
    "workingDir", *_PROBES,
))  # fmt: skip
_SILENT = frozenset((
    "imagePullPolicy", "stdin", "tty", "terminationMessagePath", "terminationMessagePolicy", "shareProcessNamespace",
))  # fmt: skip


@dataclass(slots=True)
class _Pod:
    workload: _Workload
    objects: list[MapNode]
    draft: Draft
    values: dict[str, str] = field(default_factory=dict)
    """The variables of the container, for `$(NAME)`."""
    config_maps: dict[str, dict[str, Any]] = field(init=False)
    claimed_paths: dict[str, str] = field(init=False)
    """The directories of the host by the name of the claim that is bound to them."""

    def __post_init__(self) -> None:
        self.config_maps = {_name(i): as_mapping(i.get("data")) for i in self.objects if i.get("kind") == "ConfigMap"}
        self.claimed_paths = dict(_claimed_paths(self.objects))

    @property
    def spec(self) -> dict[str, Any]:
        return as_mapping(self.workload.template.get("spec"))

    def read(self) -> ImportedRecipe:
        container = self.workload.container
        image = scalar_text(container.get("image"))
        if not image:
            raise UnresolvedError("the container has no image", place_of_key(container, "name"), "write `image`")
        if self.workload.document.get("kind") == _SET:
            group = as_mapping(as_mapping(self.workload.document["spec"]).get("leaderWorkerTemplate"))
            self._set_nodes(group)
        options = list(self._options())
        self._report_others()
        command, arguments = self._words("command"), self._words("args")
        if (program := ray_program([word.text for word in (*command, *arguments)])) is not None:
            command, arguments = [], [ExpandedWord(word, START) for word in program]
        return from_parts(
            self.draft, ExpandedWord(image, place_of_key(container, "image")), options, command, arguments
        )

    def _set_nodes(self, group: dict[str, Any]) -> None:
        """The variables that the controller sets in the leader, and `nodes` of the recipe."""
        size, place = scalar_text(group.get("size")) or "1", place_of_key(self.workload.document, "spec")
        workers = as_list(as_mapping(as_mapping(group.get("workerTemplate")).get("spec")).get("containers"))
        if not re.fullmatch(r"[1-9][0-9]{0,2}", size):
            hint = "write the number of pods of the group"
            raise UnresolvedError(f"size: `{shorten(size, 30)}` is not a number", place_of_key(group, "size"), hint)
        if size != "1" and not workers:
            reason = f"the group has {size} pods, and the file does not contain the workers"
            raise UnresolvedError(reason, place, "add `workerTemplate`, which Kubernetes requires")
        self.values |= {"LWS_GROUP_SIZE": size, "LWS_WORKER_INDEX": "0"}
        image = self.workload.container.get("image")
        if workers and image not in [as_mapping(worker).get("image") for worker in workers]:
            self.lose("another image for the workers", place, f"every node starts {shorten(scalar_text(image))}")
        if size != "1":
            self.draft.nodes = int(size)
            message = f"the group of {size} pods became `nodes: {size}`, which adds the arguments of each machine"
            self.draft.report.add(SPELLING, message, None, place, "nodes")

    def lose(self, what: str, place: TextPosition, hint: str = _LOST) -> None:
        """Report a setting that a recipe cannot express."""
        self.draft.report.add(NOT_TAKEN_OVER, f"a recipe cannot express {what}", hint, place)

    def _words(self, key: str) -> list[ExpandedWord]:
        """`command` replaces the entrypoint of the image, `args` its command; both may contain `$(NAME)`."""
        node = self.workload.container.get(key)
        words = []
        for index, item in enumerate(as_list(node)):
            place = place_of_key(node, index)
            if not isinstance(item, str):
                message = f"{key}: `{shorten(scalar_text(item), 30)}` is not text, so Kubernetes rejects the object"
                self.draft.report.add(REFUSED_VALUE, message, "quote it", place)
            words.append(ExpandedWord(expand_variables(scalar_text(item), self.values), place))
        return words

    def _options(self) -> Iterator[DockerOption]:
        container, spec = self.workload.container, self.spec
        yield DockerOption("name", self.workload.name or scalar_text(container.get("name")), START)
        for key, name in (("hostIPC", "ipc"), ("hostNetwork", "network"), ("hostPID", "pid")):
            if spec.get(key) is True:
                yield DockerOption(name, "host", place_of_key(spec, key))
        if seconds := scalar_text(spec.get("terminationGracePeriodSeconds")):
            yield DockerOption("stop-timeout", seconds, place_of_key(spec, "terminationGracePeriodSeconds"))
        for alias in map(as_mapping, as_list(spec.get("hostAliases"))):
            for host in map(scalar_text, as_list(alias.get("hostnames"))):
                yield DockerOption("add-host", f"{host}:{scalar_text(alias.get('ip'))}", place_of_key(alias, "ip"))
        if directory := scalar_text(container.get("workingDir")):
            yield DockerOption("workdir", directory, place_of_key(container, "workingDir"))
        if scalar_text(spec.get("runtimeClassName")) == "nvidia" and not self._gpus():
            yield DockerOption("runtime", "nvidia", place_of_key(spec, "runtimeClassName"))
        for source in (self._environment, self._resources, self._security, self._mounts, self._ports, self._labels):
            yield from source()

    def _environment(self) -> Iterator[DockerOption]:
        container = self.workload.container
        for source in map(as_mapping, as_list(container.get("envFrom"))):
            yield from self._env_from(source)
        variables = container.get("env")
        for index, entry in enumerate(map(as_mapping, as_list(variables))):
            name, place = scalar_text(entry.get("name")), place_of_key(variables, index)
            if "valueFrom" in entry:
                yield from self._value_from(name, as_mapping(entry["valueFrom"]), place)
                continue
            if not isinstance(value := entry.get("value", ""), str):
                message = f"env {name}: the value is not text, so Kubernetes rejects the object"
                self.draft.report.add(REFUSED_VALUE, message, "quote it", place)
            self.values[name] = expand_variables(scalar_text(value), self.values)
            yield DockerOption("env", f"{name}={self.values[name]}", place)

    def _env_from(self, source: dict[str, Any]) -> Iterator[DockerOption]:
        reference = as_mapping(source.get("configMapRef"))
        name, place = scalar_text(reference.get("name")), place_of_key(reference, "name")
        data = self.config_maps.get(name)
        if data is None:
            kind, other = next(iter(source.items()), ("envFrom", {}))
            name, place = scalar_text(as_mapping(other).get("name")), place_of_key(source, kind)
            hint = "add its variables to container.env or container.secrets"
            self.lose(f"envFrom {kind} {shorten(name)}, which is not in the file", place, hint)
            return
        for key, value in data.items():
            self.values[key] = scalar_text(value)
            yield DockerOption("env", f"{scalar_text(source.get('prefix'))}{key}={scalar_text(value)}", place)

    def _value_from(self, name: str, source: dict[str, Any], place: TextPosition) -> Iterator[DockerOption]:
        if "secretKeyRef" in source:
            self.values[name] = self.draft.launch_value(name)
            yield DockerOption("env", name, place)
            return
        reference = as_mapping(source.get("configMapKeyRef"))
        data = self.config_maps.get(scalar_text(reference.get("name")), {})
        if (key := scalar_text(reference.get("key"))) in data:
            self.values[name] = scalar_text(data[key])
            yield DockerOption("env", f"{name}={self.values[name]}", place)
        elif name not in {engine.nodes.address_variable for engine in ENGINES.values()} or self.draft.nodes == 1:
            what = f"the variable {name}, whose value only the cluster knows"
            self.lose(what, place, "add it to container.env if the engine needs it")

    def _gpus(self) -> str:
        resources = as_mapping(self.workload.container.get("resources"))
        limits, requests = as_mapping(resources.get("limits")), as_mapping(resources.get("requests"))
        return scalar_text(limits.get(_GPU)) or scalar_text(requests.get(_GPU))

    def _resources(self) -> Iterator[DockerOption]:
        resources = as_mapping(self.workload.container.get("resources"))
        limits = as_mapping(resources.get("limits"))
        if (gpus := self._gpus()) not in ("", "0"):
            yield DockerOption("gpus", gpus, place_of_key(limits, _GPU))
        for key in limits:
            place, text = place_of_key(limits, key), scalar_text(limits[key])
            if key == "memory":
                yield DockerOption("memory", docker_size(text), place)
            elif key == "cpu":
                yield DockerOption("cpus", text.removesuffix("m") + ("e-3" if text.endswith("m") else ""), place)
            elif key not in (_GPU, "ephemeral-storage"):
                self.lose(f"the resource {key}", place)
        if claims := resources.get("claims"):
            self.lose("resource claims", place_of_key(claims, 0), "select the GPU with container.gpus")

    def _security(self) -> Iterator[DockerOption]:
        pod, own = (
            as_mapping(self.spec.get("securityContext")),
            as_mapping(self.workload.container.get("securityContext")),
        )
        both = {**pod, **own}
        capabilities = as_mapping(own.get("capabilities"))
        for key, name in (("add", "cap-add"), ("drop", "cap-drop")):
            for index, word in enumerate(as_list(capabilities.get(key))):
                yield DockerOption(name, scalar_text(word), place_of_key(capabilities[key], index))
        if own.get("privileged") is True:
            yield DockerOption("privileged", None, place_of_key(own, "privileged"))
        if own.get("allowPrivilegeEscalation") is False:
            yield DockerOption("security-opt", "no-new-privileges", place_of_key(own, "allowPrivilegeEscalation"))
        if own.get("readOnlyRootFilesystem") is True:
            yield DockerOption("read-only", None, place_of_key(own, "readOnlyRootFilesystem"))
        if scalar_text(as_mapping(both.get("seccompProfile")).get("type")) == "Unconfined":
            yield DockerOption("security-opt", "seccomp=unconfined", place_of_key(both, "seccompProfile"))
        if user := scalar_text(both.get("runAsUser")):
            group = scalar_text(both.get("runAsGroup"))
            yield DockerOption("user", f"{user}:{group}" if group else user, place_of_key(own, "runAsUser"))
        for word in (*as_list(pod.get("supplementalGroups")), *filter(None, [pod.get("fsGroup")])):
            yield DockerOption("group-add", scalar_text(word), place_of_key(self.spec, "securityContext"))

    def _mounts(self) -> Iterator[DockerOption]:
        volumes = {as_mapping(v).get("name"): as_mapping(v) for v in as_list(self.spec.get("volumes"))}
        mounts = self.workload.container.get("volumeMounts")
        for index, mount in enumerate(map(as_mapping, as_list(mounts))):
            place, target = place_of_key(mounts, index), scalar_text(mount.get("mountPath"))
            volume = volumes.get(mount.get("name"), {})
            if (path := self._host_path(volume)) is not None:
                source = join(path, scalar_text(mount.get("subPath"))).rstrip("/") or "/"
                mode = ":ro" if mount.get("readOnly") is True else ""
                yield DockerOption("volume", f"{source}:{target}{mode}", place)
            elif claim := scalar_text(as_mapping(volume.get("persistentVolumeClaim")).get("claimName")):
                message = f"the claim {shorten(claim)} became the Docker volume of that name, which is empty at first"
                hint = f"fill it, or mount a directory of the host at {target}"
                self.draft.report.add(NOT_TAKEN_OVER, message, hint, place)
                mode = ":ro" if mount.get("readOnly") is True else ""
                yield DockerOption("volume", f"{claim}:{target}{mode}", place)
            elif "emptyDir" in volume:
                yield from self._empty_directory(as_mapping(volume["emptyDir"]), target, place)
            else:
                kind = next((key for key in volume if key != "name"), "volume")
                what = f"the {kind} {shorten(scalar_text(mount.get('name')))} at {target}"
                self.lose(what, place, f"mount a directory of the host at {target}")

    def _host_path(self, volume: dict[str, Any]) -> str | None:
        """The directory of the host behind a volume, also through a claim on a local volume of the same file."""
        claim = scalar_text(as_mapping(volume.get("persistentVolumeClaim")).get("claimName"))
        path = scalar_text(as_mapping(volume.get("hostPath")).get("path"))
        return path or self.claimed_paths.get(claim)

    def _empty_directory(self, volume: dict[str, Any], target: str, place: TextPosition) -> Iterator[DockerOption]:
        size = docker_size(scalar_text(volume.get("sizeLimit")))
        if target == "/dev/shm" and volume.get("medium") == "Memory":  # noqa: S108 - a path in the container
            if size:
                yield DockerOption("shm-size", size, place)
            else:
                message = "the shared memory at /dev/shm has no limit in the pod; Docker's default is 64 MB"
                self.draft.report.add(NOT_TAKEN_OVER, message, "set container.shm_size, or `ipc: host`", place)
        elif volume.get("medium") == "Memory":
            yield DockerOption("tmpfs", f"{target}:size={size}" if size else target, place)
        else:
            message = f"the empty directory at {target} is part of the container's own file system"
            self.draft.report.add(LEFT_OUT, message, None, place)

    def _ports(self) -> Iterator[DockerOption]:
        """A Service of the file in front of the pod publishes its ports; without one, the ports of the container."""
        if self.spec.get("hostNetwork") is True:
            return
        ports = [as_mapping(port) for port in as_list(self.workload.container.get("ports"))]
        named = {port.get("name"): scalar_text(port.get("containerPort")) for port in ports}
        published: dict[str, str] = {}
        for service in filter(self._selects, self.objects):
            for port in map(as_mapping, as_list(as_mapping(service.get("spec")).get("ports"))):
                target = port.get("targetPort", port.get("port"))
                inside = named.get(target, scalar_text(target))
                published[inside] = scalar_text(port.get("nodePort")) or scalar_text(port.get("port"))
        place = place_of_key(self.workload.container, "ports")
        for port in ports:
            inside = scalar_text(port.get("containerPort"))
            outside = scalar_text(port.get("hostPort")) or published.get(inside) or inside
            message = f"the port {inside} of the pod is published as {outside}"
            self.draft.report.add(SPELLING, message, "remove it from container.ports if clients do not use it", place)
            yield DockerOption("publish", f"{outside}:{inside}", place)

    def _selects(self, service: MapNode) -> bool:
        labels = as_mapping(as_mapping(self.workload.template.get("metadata")).get("labels"))
        selector = as_mapping(as_mapping(service.get("spec")).get("selector"))
        return service.get("kind") == "Service" and bool(selector) and selector.items() <= labels.items()

    def _labels(self) -> Iterator[DockerOption]:
        metadata = as_mapping(self.workload.template.get("metadata"))
        annotations = as_mapping(metadata.get("annotations"))
        for key, value in annotations.items():
            if not re.search(r"(?:^|\.)(?:k8s|kubernetes)\.io/", key):
                yield DockerOption("label", f"{key}={scalar_text(value)}", place_of_key(annotations, key))

    def _report_others(self) -> None:
        container, spec, report = self.workload.container, self.spec, self.draft.report
        for key in sorted(set(container) - _READ_CONTAINER - _SILENT):
            self.lose(f"`{key}` of a container", place_of_key(container, key))
        if spec.get("initContainers"):
            what = "init containers, which run before the engine"
            self.lose(what, place_of_key(spec, "initContainers"), "do their work before the launch")
        left = [key for key in (*spec, *container) if key in _SCHEDULING or key in _PROBES]
        for key in sorted(set(spec) - _READ_SPEC - _SCHEDULING - _SILENT - {"initContainers"}):
            self.lose(f"`{key}` of a pod", place_of_key(spec, key))
        if left:
            message = f"not part of the launch: {', '.join(left)} (`up` waits for the engine itself)"
            report.add(LEFT_OUT, message, None, place_of_key(self.workload.document, "kind"))
        outer = as_mapping(self.workload.document.get("spec"))
        if scalar_text(outer.get("replicas")) not in ("", "1"):
            self.lose("several replicas", place_of_key(outer, "replicas"), "launch one lane per replica")


_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|Pi|[kMGTP]?)")
_DECIMAL = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}


def docker_size(quantity: str) -> str:
    """A quantity in the units of Docker: `16Gi` → `16g`, `16G` → `16000000000`; other text stays as it is."""
    match = _QUANTITY.fullmatch(quantity)
    if match is None:
        return quantity
    if match[2] in _DECIMAL:
        return str(round(float(match[1]) * _DECIMAL[match[2]]))
    return match[1] + match[2][:1].lower()
