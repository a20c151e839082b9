"""`docker inspect` of a container: its argv and options exactly as the engine holds them, no shell involved."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gb300serve.importers.docker_arguments import DockerOption
from gb300serve.importers.docker_options import apply_options
from gb300serve.importers.draft import Draft
from gb300serve.importers.recipe import ImportedRecipe, from_command, image_section
from gb300serve.importers.report import LEFT_OUT, Report, SourceInvalidError, TextPosition, shorten
from gb300serve.importers.shell.words import ExpandedWord

_AT = TextPosition(1, 1)
_SHM_DEFAULT = 64 << 20  # bytes; dockerd's own
_UNSAID = {
    "Privileged": "privileged", "ReadonlyRootfs": "read-only", "PublishAllPorts": "publish-all", "AutoRemove": "rm",
}  # fmt: skip
_LISTS = {
    "CapDrop": "cap-drop",
    "Dns": "dns",
    "ExtraHosts": "add-host",
    "GroupAdd": "group-add",
    "SecurityOpt": "security-opt",
}
_VALUES = {
    "CpusetCpus": "cpuset-cpus",
    "CpusetMems": "cpuset-mems",
    "PidsLimit": "pids-limit",
    "UTSMode": "uts",
}


def as_mapping(value: Any) -> dict[str, Any]:
    """A mapping, an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """A list, an empty one for anything else."""
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """A text, an empty one for what is not a text or a number."""
    return (
        value
        if isinstance(value, str)
        else str(value)
        if isinstance(value, int) and not isinstance(value, bool)
        else ""
    )


def host_options(inspected: Mapping[str, Any], host: Mapping[str, Any]) -> Iterator[DockerOption]:
    """The options in the order in which a plan prints them."""
    for source in (_gpus(host), _modes(host), _limits(host), _mounts(inspected, host), _ports(host), _others(host)):
        for name, value in source:
            if value != "":
                yield DockerOption(name, value, _AT)


OptionValues = Iterator[tuple[str, str | None]]


def _gpus(host: Mapping[str, Any]) -> OptionValues:
    for request in map(as_mapping, as_list(host.get("DeviceRequests"))):
        names = [as_text(name) for name in as_list(request.get("DeviceIDs"))]
        if request.get("Driver") == "cdi":
            yield from (("device", name) for name in names)
        elif any("gpu" in as_list(group) for group in as_list(request.get("Capabilities"))):
            yield "gpus", f'"device={",".join(names)}"' if names else as_text(request.get("Count"))
    if host.get("Runtime") == "nvidia":
        yield "runtime", "nvidia"


def _modes(host: Mapping[str, Any]) -> OptionValues:
    if (ipc := as_text(host.get("IpcMode"))) not in ("", "private", "shareable"):
        yield "ipc", ipc
    if (network := as_text(host.get("NetworkMode"))) not in ("", "default", "bridge"):
        yield "network", network
    if isinstance(shm := host.get("ShmSize"), int) and shm not in (0, _SHM_DEFAULT):
        yield "shm-size", _size(shm)
    if isinstance(memory := host.get("Memory"), int) and memory > 0:
        yield "memory", _size(memory)
    if pid := as_text(host.get("PidMode")):
        yield "pid", pid
    if host.get("Init") is True:
        yield "init", None


def _size(size: int) -> str:
    """Bytes, in the largest unit that loses none: dockerd reads `24g` as 24 GiB."""
    for shift, unit in ((30, "g"), (20, "m"), (10, "k")):
        if size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return str(size)


def _limits(host: Mapping[str, Any]) -> OptionValues:
    for limit in map(as_mapping, as_list(host.get("Ulimits"))):
        yield "ulimit", f"{as_text(limit.get('Name'))}={as_text(limit.get('Soft'))}:{as_text(limit.get('Hard'))}"
    for name in as_list(host.get("CapAdd")):
        yield "cap-add", as_text(name).removeprefix("CAP_")


def _mounts(inspected: Mapping[str, Any], host: Mapping[str, Any]) -> OptionValues:
    for bind in as_list(host.get("Binds")):
        yield "volume", as_text(bind)
    for mount in map(as_mapping, as_list(host.get("Mounts"))):
        mode = ",readonly" if mount.get("ReadOnly") is True else ""
        kind, source, target = as_text(mount.get("Type")), as_text(mount.get("Source")), as_text(mount.get("Target"))
        yield "mount", f"type={kind},source={source},target={target}{mode}"
    if not host.get("Binds") and not host.get("Mounts"):
        for mount in map(as_mapping, as_list(inspected.get("Mounts"))):
            if mount.get("Type") == "bind":
                mode = ":ro" if mount.get("RW") is False else ""
                yield "volume", f"{as_text(mount.get('Source'))}:{as_text(mount.get('Destination'))}{mode}"
    for target, options in as_mapping(host.get("Tmpfs")).items():
        yield "tmpfs", f"{target}:{as_text(options)}" if as_text(options) else target


def _ports(host: Mapping[str, Any]) -> OptionValues:
    for inside, bindings in as_mapping(host.get("PortBindings")).items():
        port = inside.removesuffix("/tcp")
        for binding in map(as_mapping, as_list(bindings)):
            words = (as_text(binding.get("HostIp")), as_text(binding.get("HostPort")), port)
            yield "publish", ":".join(word for word in words if word)


def _others(host: Mapping[str, Any]) -> OptionValues:
    for key, name in _LISTS.items():
        yield from ((name, as_text(value)) for value in as_list(host.get(key)))
    for device in map(as_mapping, as_list(host.get("Devices"))):
        outside, inside = as_text(device.get("PathOnHost")), as_text(device.get("PathInContainer"))
        rights = as_text(device.get("CgroupPermissions"))
        words = [
            outside,
            *([inside] if inside != outside or rights not in ("", "rwm") else []),
            *([rights] if rights not in ("", "rwm") else []),
        ]
        yield "device", ":".join(words)
    log = as_mapping(host.get("LogConfig"))
    if (driver := as_text(log.get("Type"))) and (driver != "json-file" or as_mapping(log.get("Config"))):
        yield "log-driver", driver
        yield from (("log-opt", f"{key}={as_text(value)}") for key, value in as_mapping(log.get("Config")).items())
    policy = as_mapping(host.get("RestartPolicy"))
    if (name := as_text(policy.get("Name"))) not in ("", "no"):
        retries = policy.get("MaximumRetryCount")
        yield "restart", f"{name}:{retries}" if isinstance(retries, int) and retries and name == "on-failure" else name
    if isinstance(nano := host.get("NanoCpus"), int) and nano > 0:
        yield "cpus", f"{nano / 1e9:g}"
    yield from ((name, None) for key, name in _UNSAID.items() if host.get(key) is True)
    yield from (
        (name, as_text(host[key])) for key, name in _VALUES.items() if as_text(host.get(key)) not in ("", "0", "-1")
    )


_OWN_ENTRYPOINTS = (
    ("vllm", "serve"),
    ("python3", "-m", "vllm.entrypoints.openai.api_server"),
    ("/usr/local/bin/vllm-snapshot-entrypoint.sh",),
    ("/opt/nvidia/nvidia_entrypoint.sh",),
)
# What images set for themselves: where the image is not there to compare with, these are taken for its own.
_OF_IMAGES = re.compile(
    r"PATH|HOME|HOSTNAME|LANG|LC_ALL|TERM|LD_LIBRARY_PATH|LIBRARY_PATH|DEBIAN_FRONTEND|PYTHON_\w+|PYTHONUNBUFFERED|"
    r"CUDA_(?:VERSION|HOME)|NV_\w+|NVARCH|NCCL_VERSION|UV_\w+|NVIDIA_\w+|VLLM_(?:USAGE_SOURCE|BUILD_COMMIT|IMAGE_TAG)|"
    r"TORCH_CUDA_ARCH_LIST|PIP_\w+|VIRTUAL_ENV"
)
_LABELS_OF_IMAGES = re.compile(
    r"org\.opencontainers\..*|maintainer|com\.nvidia\..*|ai\.vllm\..*|org\.label-schema\..*|com\.docker\..*"
)
_OURS = "gb300serve."


def from_inspect(value: Any, report: Report, image: Mapping[str, Any] | None = None) -> ImportedRecipe:
    """The recipe of an inspected container; `image` is its inspected image, where that is there to compare with."""
    found = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]
    inspected = next((one for one in found if isinstance(one.get("Config"), dict) and "HostConfig" in one), None)
    if inspected is None:
        message = f"{report.file} is JSON, but not what `docker inspect` prints of a container"
        raise SourceInvalidError(message, hint="docker inspect NAME > FILE, or use --container NAME")
    if len(found) > 1:
        report.add(LEFT_OUT, f"{len(found)} containers are described: the first is imported", "name one container", _AT)
    return _Inspected(
        inspected, as_mapping(as_mapping(image or {}).get("Config")), image is not None, report
    ).imported()


class _Inspected:
    def __init__(self, inspected: dict[str, Any], of_image: dict[str, Any], known: bool, report: Report) -> None:  # noqa: FBT001 - two kinds of one thing
        self.inspected, self.of_image, self.known, self.report = inspected, of_image, known, report
        self.config, self.host = as_mapping(inspected["Config"]), as_mapping(inspected["HostConfig"])

    def imported(self) -> ImportedRecipe:
        draft = Draft(self.report)
        image = self._image(draft)
        apply_options(draft, [*self._config_options(), *host_options(self.inspected, self.host)])
        words = [ExpandedWord(as_text(word), _AT) for word in as_list(self.config.get("Cmd"))]
        entrypoint = self._entrypoint(image)
        if entrypoint:
            draft.container["entrypoint"] = entrypoint[0]
            words = [*(ExpandedWord(word, _AT) for word in entrypoint[1:]), *words]
        return from_command(draft, image, words)

    def _image(self, draft: Draft) -> dict[str, Any]:
        named, identity = as_text(self.config.get("Image")), as_text(self.inspected.get("Image"))
        quiet = Draft(Report())
        section = image_section(quiet if "@" not in named else draft, ExpandedWord(named, _AT))
        if "digest" not in section and re.fullmatch(r"sha256:[0-9a-f]{64}", identity):
            section["id"] = identity
        return section

    def _config_options(self) -> Iterator[DockerOption]:
        if len(name := as_text(self.inspected.get("Name")).removeprefix("/")) > 1:
            yield DockerOption("name", name, _AT)
        if (user := as_text(self.config.get("User"))) and user != as_text(self.of_image.get("User")) and self.known:
            yield DockerOption("user", user, _AT)
        if (
            (workdir := as_text(self.config.get("WorkingDir"))) != as_text(self.of_image.get("WorkingDir"))
            and self.known
            and workdir
        ):
            yield DockerOption("workdir", workdir, _AT)
        if isinstance(timeout := self.config.get("StopTimeout"), int):
            yield DockerOption("stop-timeout", str(timeout), _AT)
        yield from self._env()
        yield from self._labels()

    def _env(self) -> Iterator[DockerOption]:
        own = set(map(as_text, as_list(self.of_image.get("Env"))))
        left = []
        for word in map(as_text, as_list(self.config.get("Env"))):
            name, _, value = word.partition("=")
            # A word that the image says too is the image's; without the image, its name has to tell.
            if word in own if self.known else _OF_IMAGES.fullmatch(name) and not self._chooses(name, value):
                left.append(name)
            elif name:
                yield DockerOption("env", word, _AT)
        if left and not self.known:
            message = f"taken for the image's own variables, and left out: {', '.join(left)}"
            self.report.add(LEFT_OUT, message, "add those that the launch set to container.env", _AT)

    def _chooses(self, name: str, value: str) -> bool:
        """NVIDIA's variable chooses GPUs where the older runtime reads it."""
        return name == "NVIDIA_VISIBLE_DEVICES" and bool(value) and as_text(self.host.get("Runtime")) == "nvidia"

    def _labels(self) -> Iterator[DockerOption]:
        own = as_mapping(self.of_image.get("Labels"))
        for key, value in as_mapping(self.config.get("Labels")).items():
            of_image = own.get(key) == value if self.known else _LABELS_OF_IMAGES.fullmatch(key)
            if not of_image and not key.startswith((_OURS, "com.docker.")):
                yield DockerOption("label", f"{key}={as_text(value)}", _AT)

    def _entrypoint(self, image: dict[str, Any]) -> tuple[str, ...]:
        """What the launch set; the image's own is left out."""
        said = tuple(map(as_text, as_list(self.config.get("Entrypoint"))))
        if self.known:
            return () if list(said) == as_list(self.of_image.get("Entrypoint")) else said
        if said in _OWN_ENTRYPOINTS or not said:
            return ()
        if len(said) > 1:
            message = f"the entrypoint {shorten(' '.join(said))} of {image['repository']} was taken for the image's own"
            self.report.add(LEFT_OUT, message, "`docker run --entrypoint` can set one word only", _AT)
            return ()
        return said
