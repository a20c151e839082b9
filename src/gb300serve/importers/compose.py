"""Compose files: the service that runs an engine, as options of `docker run`."""

import re
from collections.abc import Callable, Iterator
from posixpath import basename, join, normpath
from typing import Any

from gb300serve.document.nodes import ListNode, MapNode
from gb300serve.importers.compose_project import (
    ComposeProject,
    choose_service,
    name_pairs,
    split_command,
)
from gb300serve.importers.docker_arguments import DockerOption
from gb300serve.importers.docker_options import HEALTH_TIMES, health_options
from gb300serve.importers.draft import Draft
from gb300serve.importers.inspected import as_list, as_mapping, scalar_text
from gb300serve.importers.recipe import COMMAND_HINT, ImportedRecipe, from_parts
from gb300serve.importers.report import (
    LEFT_OUT,
    NOT_TAKEN_OVER,
    REFUSED_VALUE,
    SPELLING,
    START,
    UNSET,
    TextPosition,
    UnresolvedError,
    place_of_key,
    shorten,
)
from gb300serve.importers.shell.words import OPEN, ExpandedWord


def from_compose(text: str, draft: Draft, home: str, service: str | None) -> ImportedRecipe:
    """The recipe of a service: the one that runs an engine, or the one of that name."""
    project = ComposeProject(draft, home)
    file = draft.report.file or "-"
    root = project.with_override(project.load(text, file), file)
    name = choose_service(project, root, service)
    return _ComposeService(project, root, name).read()


# Keys whose text is the value of a docker option.
_TEXTS = {
    "cgroup": "cgroupns", "cgroup_parent": "cgroup-parent", "container_name": "name", "cpu_shares": "cpu-shares",
    "cpus": "cpus", "cpuset": "cpuset-cpus", "domainname": "domainname", "hostname": "hostname", "ipc": "ipc",
    "isolation": "isolation", "mac_address": "mac-address", "mem_limit": "memory",
    "mem_reservation": "memory-reservation", "mem_swappiness": "memory-swappiness", "memswap_limit": "memory-swap",
    "oom_score_adj": "oom-score-adj", "pid": "pid", "pids_limit": "pids-limit", "platform": "platform",
    "restart": "restart", "runtime": "runtime", "shm_size": "shm-size", "stop_signal": "stop-signal", "user": "user",
    "userns_mode": "userns", "uts": "uts", "working_dir": "workdir",
}  # fmt: skip
# Keys whose items (or whose only text) are values of a docker option.
_LISTS = {
    "cap_add": "cap-add", "cap_drop": "cap-drop", "device_cgroup_rules": "device-cgroup-rule", "dns": "dns",
    "dns_opt": "dns-option", "dns_search": "dns-search", "group_add": "group-add", "security_opt": "security-opt",
    "tmpfs": "tmpfs", "volumes_from": "volumes-from",
}  # fmt: skip
_SWITCHES = {
    "init": "init", "privileged": "privileged", "read_only": "read-only", "oom_kill_disable": "oom-kill-disable",
    "stdin_open": "interactive", "tty": "tty",
}  # fmt: skip
_PAIR_OPTIONS = {
    "annotations": ("annotation", "="), "extra_hosts": ("add-host", ":"), "labels": ("label", "="),
    "sysctls": ("sysctl", "="),
}  # fmt: skip
_READ = frozenset(("image", "command", "entrypoint", "extends"))
# What is not a part of the container, or does not change it.
_OUTSIDE = frozenset((
    "attach", "build", "depends_on", "develop", "expose", "links", "profiles", "pull_policy", "pull_refresh_after",
    "scale",
))  # fmt: skip

Handler = Callable[["_ComposeService", Any, TextPosition], Iterator[DockerOption]]


class _ComposeService:
    """A service of a Compose file, as options of `docker run`."""

    def __init__(self, project: ComposeProject, root: MapNode, name: str) -> None:
        self.project, self.root, self.name = project, root, name
        self.draft, self.report = project.draft, project.draft.report
        self.node = project.service(root, name, project.draft.directory)

    def read(self) -> ImportedRecipe:
        image = self.text(self.node, "image")
        place = place_of_key(self.node, "image")
        if not image:
            hint = "build the image and write its name under `image`, or use `import --container NAME`"
            raise UnresolvedError(f"the service {self.name} builds its image and names none", place, hint)
        options = [option for key, value in self.node.items() for option in self._options(key, value)]
        if "container_name" not in self.node and len(self.name) > 1:
            self.report.add(SPELLING, f"container.name is the name of the service, {self.name}", None, START)
            options.insert(0, DockerOption("name", self.name, START))
        entrypoint, command = self.words("entrypoint"), self.words("command")
        if not entrypoint and self.node.get("entrypoint") is not None:  # an empty one: the command names the program
            entrypoint, command = command[:1], command[1:]
        if "build" in self.node and not entrypoint and not command:
            reason = f"the service {self.name} has no command: its image is built here, so the model is in a Dockerfile"
            raise UnresolvedError(reason, place_of_key(self.node, "build"), COMMAND_HINT)
        return from_parts(self.draft, ExpandedWord(image, place), options, entrypoint, command)

    def text(self, node: Any, key: str | int) -> str:
        """A scalar with its variables."""
        value = node.get(key) if isinstance(node, dict) and isinstance(key, str) else None
        if isinstance(node, list) and isinstance(key, int):
            value = node[key]
        return self.project.variables.text(scalar_text(value), place_of_key(node, key))

    def words(self, key: str) -> list[ExpandedWord]:
        """`command` or `entrypoint`: a list, or a text that Compose splits."""
        value, place = self.node.get(key), place_of_key(self.node, key)
        if isinstance(value, ListNode):
            for index, item in enumerate(value):
                if not isinstance(item, str):
                    message = f"{key}: `{shorten(scalar_text(item), 30)}` is not text, so Compose rejects the file"
                    self.report.add(REFUSED_VALUE, message, "quote it", place_of_key(value, index))
            return [ExpandedWord(self.text(value, index), place_of_key(value, index)) for index in range(len(value))]
        words: list[ExpandedWord] = []
        for word in split_command(self.text(self.node, key), self.draft, place):
            after_flag = bool(words) and words[-1].text.startswith("-") and "=" not in words[-1].text
            if after_flag or not self._is_unset(word, place):
                words.append(ExpandedWord(word, place))
        return words

    def _is_unset(self, word: str, place: TextPosition) -> bool:
        """Whether a word is a variable that nothing sets: Compose replaces it by nothing."""
        reference = self.draft.reference(word)
        if reference is None:
            return False
        message = f"nothing sets the variable {reference.name}, so Compose leaves it out of the command"
        self.report.add(UNSET, message, "add its words to the recipe", place)
        return True

    def _options(self, key: str, value: Any) -> Iterator[DockerOption]:
        place = place_of_key(self.node, key)
        if value is None or key in _READ or key.startswith("x-"):
            return
        if key in _TEXTS:
            yield DockerOption(_TEXTS[key], self.text(self.node, key), place)
        elif key in _LISTS:
            yield from (DockerOption(_LISTS[key], text, at) for text, at in self.items(value, place))
        elif key in _SWITCHES:
            if self.text(self.node, key) == "true":
                yield DockerOption(_SWITCHES[key], None, place)
        elif key in _PAIR_OPTIONS:
            option, separator = _PAIR_OPTIONS[key]
            for name, text, at in name_pairs(value):
                written = (
                    f"{name}{separator}{self.project.variables.text(text or '', at)}" if text is not None else name
                )
                yield DockerOption(option, written, at)
        elif key in _HANDLERS:
            yield from _HANDLERS[key](self, value, place)
        elif key in _OUTSIDE:
            self.report.add(LEFT_OUT, f"`{key}` of the service is not part of the container", None, place)
        else:
            self.lose(key, place)

    def items(self, value: Any, place: TextPosition) -> Iterator[tuple[str, TextPosition]]:
        """The texts of a list, or a text alone."""
        if isinstance(value, list):
            yield from ((self.text(value, index), place_of_key(value, index)) for index in range(len(value)))
        else:
            yield self.project.variables.text(scalar_text(value), place), place

    def lose(self, what: str, place: TextPosition, hint: str = "the imported launch runs without it") -> None:
        """Report a setting that a recipe cannot express."""
        self.report.add(NOT_TAKEN_OVER, f"a recipe cannot express `{what}` of a service", hint, place)

    def path(self, path: str) -> str:
        """A path of the host: Compose resolves `~`, and relative paths from the directory of the project."""
        if path == "~" or path.startswith("~/"):
            return self.project.home + path[1:]
        return normpath(join(self.draft.directory, path)) if path.startswith(".") else path


def _environment(service: _ComposeService, value: Any, place: TextPosition) -> Iterator[DockerOption]:
    del place
    for name, text, at in name_pairs(value):
        written = name if text is None else f"{name}={service.project.variables.text(text, at)}"
        yield DockerOption("env", written, at)


def _env_file(service: _ComposeService, value: Any, place: TextPosition) -> Iterator[DockerOption]:
    """Its variables come before those of `environment`, which overrides them."""
    overridden = {name for name, _, _ in name_pairs(service.node.get("environment"))}
    for item in value if isinstance(value, list) else [value]:
        node = item if isinstance(item, dict) else {"path": item}
        named = service.path(service.project.variables.text(scalar_text(node.get("path")), place))
        path = normpath(join(service.draft.directory, named))
        text = service.draft.read_file(path)
        if text is None:
            message = f"the env file {shorten(path)} cannot be read here: its variables are missing from the recipe"
            hint = "copy it to that path, or write its variables into the recipe"
            service.report.add(NOT_TAKEN_OVER, message, hint, place)
            continue
        for name, setting in service.project.read_variables(text, service.project.variables.values).items():
            if name not in overridden:
                yield DockerOption("env", f"{name}={setting}", place)


def _ports(service: _ComposeService, value: Any, place: TextPosition) -> Iterator[DockerOption]:
    for index, item in enumerate(as_list(value)):
        at = place_of_key(value, index)
        if not isinstance(item, dict):
            yield DockerOption("publish", service.text(value, index), at)
            continue
        parts = [service.text(item, key) for key in ("host_ip", "published", "target")]
        protocol = service.text(item, "protocol")
        suffix = f"/{protocol}" if protocol not in ("", "tcp") else ""
        yield DockerOption("publish", ":".join(filter(None, parts)) + suffix, at)
    if service.text(service.node, "network_mode") == "host":
        message = "`ports` has no effect on the host's network, and Compose rejects it there"
        service.report.add(REFUSED_VALUE, message, "remove `ports`", place)


def _volumes(service: _ComposeService, value: Any, place: TextPosition) -> Iterator[DockerOption]:
    del place
    by_target: dict[str, DockerOption] = {}
    for index, item in enumerate(as_list(value)):
        at = place_of_key(value, index)
        if isinstance(item, dict):
            option = _long_volume(service, item, at)
        else:
            source, colon, rest = service.text(value, index).partition(":")
            source = _volume_source(service, source, at) if colon else source
            option = DockerOption("volume", source + colon + rest, at)
        if option is not None:
            target = (option.value or "").split(":")[1:2] or [option.value or ""]
            by_target[target[0] if option.name == "volume" else option.value or ""] = option
    yield from by_target.values()


def _long_volume(service: _ComposeService, item: dict[str, Any], at: TextPosition) -> DockerOption | None:
    kind, source, target = (service.text(item, key) for key in ("type", "source", "target"))
    mode = ":ro" if service.text(item, "read_only") == "true" else ""
    if kind == "tmpfs":
        size = service.text(as_mapping(item.get("tmpfs")), "size")
        return DockerOption("tmpfs", target + (f":size={size}" if size else ""), at)
    if kind not in ("bind", "volume") or not target:
        service.lose(f"volumes: type: {kind}", at)
        return None
    return DockerOption("volume", f"{_volume_source(service, source, at)}:{target}{mode}", at)


def _volume_source(service: _ComposeService, source: str, at: TextPosition) -> str:
    """The path of a mount; a volume that is bound to a directory is that directory."""
    if source.startswith((".", "/", "~", OPEN)) or "/" in source:
        return service.path(source)
    volume = as_mapping(as_mapping(service.root.get("volumes")).get(source))
    options = as_mapping(volume.get("driver_opts"))
    device = service.text(options, "device")
    if device and "bind" in service.text(options, "o").split(","):
        return service.path(device)
    name = service.text(volume, "name")
    if name or volume.get("external") is True:
        return name or source
    project = _project(service)
    message = f"the volume {source} is {project}_{source} on the machine, because Compose adds the name of the project"
    service.report.add(SPELLING, message, "check it with `docker volume ls`", at)
    return f"{project}_{source}"


def _project(service: _ComposeService) -> str:
    """The project's name: as written, else that of its directory."""
    name = service.text(service.root, "name") or service.project.variables.values.get("COMPOSE_PROJECT_NAME", "")
    return name or re.sub(r"[^a-z0-9_-]", "", basename(service.draft.directory).lower()).lstrip("_-")


def _devices(service: _ComposeService, value: Any, place: TextPosition) -> Iterator[DockerOption]:
    del place
    for index, item in enumerate(as_list(value)):
        at = place_of_key(value, index)
        parts = [service.text(item, key) for key in ("source", "target", "permissions")]
        written = ":".join(filter(None, parts)) if isinstance(item, dict) else service.text(value, index)
        yield DockerOption("device", written, at)


def _ulimits(service: _ComposeService, value: Any, place: TextPosition) -> Iterator[DockerOption]:
    del place
    for name, limit in as_mapping(value).items():
        pair = [service.text(limit, key) for key in ("soft", "hard")] if isinstance(limit, dict) else []
        written = ":".join(pair) if pair else service.text(value, name)
        yield DockerOption("ulimit", f"{name}={written}", place_of_key(value, name))


def _logging(service: _ComposeService, value: Any, place: TextPosition) -> Iterator[DockerOption]:
    node = as_mapping(value)
    if driver := service.text(node, "driver"):
        yield DockerOption("log-driver", driver, place)
    for name, text, at in name_pairs(node.get("options")):
        yield DockerOption("log-opt", f"{name}={service.project.variables.text(text or '', at)}", at)


def _gpus(service: _ComposeService, value: Any, place: TextPosition) -> Iterator[DockerOption]:
    if not isinstance(value, list):
        yield DockerOption("gpus", service.project.variables.text(scalar_text(value), place), place)
    for index, item in enumerate(as_list(value)):
        yield from _device_request(service, as_mapping(item), place_of_key(value, index))


def _device_request(service: _ComposeService, device: dict[str, Any], at: TextPosition) -> Iterator[DockerOption]:
    names = [service.text(device["device_ids"], n) for n in range(len(as_list(device.get("device_ids"))))]
    if service.text(device, "driver") == "cdi":
        yield from (DockerOption("device", name, at) for name in names)
    else:
        count = service.text(device, "count") or "all"
        yield DockerOption("gpus", f'"device={",".join(names)}"' if names else count, at)


def _deploy(service: _ComposeService, value: Any, place: TextPosition) -> Iterator[DockerOption]:
    node = as_mapping(value)
    resources = as_mapping(node.get("resources"))
    limits, reservations = as_mapping(resources.get("limits")), as_mapping(resources.get("reservations"))
    devices = reservations.get("devices")
    for index, device in enumerate(map(as_mapping, as_list(devices))):
        yield from _device_request(service, device, place_of_key(devices, index))
    for key, name in (("memory", "memory"), ("cpus", "cpus"), ("pids", "pids-limit")):
        if text := service.text(limits, key):
            yield DockerOption(name, text, place_of_key(limits, key))
    if text := service.text(reservations, "memory"):
        yield DockerOption("memory-reservation", text, place_of_key(reservations, "memory"))
    if service.text(node, "replicas") not in ("", "1"):
        service.lose("deploy.replicas", place_of_key(node, "replicas"))
    policy = as_mapping(node.get("restart_policy"))
    if policy and "restart" not in service.node:
        condition, attempts = service.text(policy, "condition") or "any", service.text(policy, "max_attempts")
        name = {"any": "always", "none": "no"}.get(condition, condition)
        yield DockerOption("restart", f"{name}:{attempts}" if attempts and name == "on-failure" else name, place)
    if others := sorted(set(node) - {"resources", "replicas", "restart_policy"}):
        message = f"deploy: {', '.join(others)} is not part of the container"
        service.report.add(LEFT_OUT, message, None, place)


def _health(service: _ComposeService, value: Any, place: TextPosition) -> Iterator[DockerOption]:
    node = as_mapping(value)
    test = node.get("test")
    words = [service.text(test, n) for n in range(len(test))] if isinstance(test, list) else []
    if isinstance(test, str):
        words = ["CMD-SHELL", service.text(node, "test")]
    if service.text(node, "disable") == "true":
        words = ["NONE"]
    keys = {key: key.replace("-", "_") for key in HEALTH_TIMES}
    times = {key: (service.text(node, name), place_of_key(node, name)) for key, name in keys.items() if name in node}
    yield from health_options(words, times, place)


def _network_mode(service: _ComposeService, value: Any, place: TextPosition) -> Iterator[DockerOption]:
    mode = service.project.variables.text(scalar_text(value), place)
    if mode.startswith("service:"):
        service.lose(f"network_mode: {mode}", place, "write `container:NAME`")
    elif mode != "bridge":  # the default of `docker run`
        yield DockerOption("network", mode, place)


def _networks(service: _ComposeService, value: Any, place: TextPosition) -> Iterator[DockerOption]:
    names = list(value) if isinstance(value, dict) else list(map(scalar_text, as_list(value)))
    for name in names:
        network = as_mapping(as_mapping(service.root.get("networks")).get(name))
        if network.get("external") in (True, "true") and len(names) == 1:
            yield DockerOption("network", service.text(network, "name") or name, place)
        elif name != "default":
            message = f"the network {name} belongs to the project: the container uses Docker's default network"
            hint = "the other services reach it at its published port; an existing network goes to container.network"
            service.report.add(NOT_TAKEN_OVER, message, hint, place)


def _files(service: _ComposeService, value: Any, place: TextPosition, section: str) -> Iterator[DockerOption]:
    """`secrets` and `configs`: a file of the host that Compose mounts read-only."""
    for item in as_list(value):
        name = scalar_text(item.get("source")) if isinstance(item, dict) else scalar_text(item)
        target = service.text(item, "target") if isinstance(item, dict) else ""
        source = service.text(as_mapping(as_mapping(service.root.get(section)).get(name)), "file")
        if not source:
            service.lose(f"{section}: {name}", place, "mount a file, or use container.secrets")
            continue
        directory = "/run/secrets/" if section == "secrets" else "/"
        mount = target if target.startswith("/") else directory + (target or name)
        path = source if source.startswith(("~", "/")) else f"./{source}"
        yield DockerOption("volume", f"{service.path(path)}:{mount}:ro", place)


def _stop(service: _ComposeService, value: Any, place: TextPosition) -> Iterator[DockerOption]:
    """`1m30s` as seconds."""
    text = service.project.variables.text(scalar_text(value), place)
    parts = re.findall(r"(\d+(?:\.\d+)?)(h|m(?!s)|s|ms)", text)
    seconds = sum(float(number) * {"h": 3600, "m": 60, "s": 1, "ms": 0.001}[unit] for number, unit in parts)
    yield DockerOption("stop-timeout", str(round(seconds)) if parts else text, place)


_HANDLERS: dict[str, Handler] = {
    "environment": _environment, "env_file": _env_file, "ports": _ports, "volumes": _volumes, "devices": _devices,
    "ulimits": _ulimits, "logging": _logging, "gpus": _gpus, "deploy": _deploy, "healthcheck": _health,
    "network_mode": _network_mode, "networks": _networks, "stop_grace_period": _stop,
    "secrets": lambda service, value, place: _files(service, value, place, "secrets"),
    "configs": lambda service, value, place: _files(service, value, place, "configs"),
}  # fmt: skip
