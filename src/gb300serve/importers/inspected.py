"""The output of `docker inspect`: the arguments and options of a container, without any shell."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gb300serve.core.values import WrittenFloat
from gb300serve.importers.docker_arguments import DockerOption
from gb300serve.importers.docker_options import apply_options, health_options
from gb300serve.importers.draft import Draft
from gb300serve.importers.recipe import ImportedRecipe, from_command, image_section
from gb300serve.importers.report import LEFT_OUT, Report, SourceInvalidError, TextPosition, shorten
from gb300serve.importers.shell.words import ExpandedWord

_AT = TextPosition(1, 1)
_SHM_DEFAULT = 64 << 20  # bytes; the default of dockerd
_SWITCHES = {
    "Privileged": "privileged", "ReadonlyRootfs": "read-only", "PublishAllPorts": "publish-all", "AutoRemove": "rm",
}  # fmt: skip
_LISTS = {
    "CapDrop": "cap-drop", "Dns": "dns", "ExtraHosts": "add-host", "GroupAdd": "group-add",
    "SecurityOpt": "security-opt",
}  # fmt: skip
_VALUES = {"CpusetCpus": "cpuset-cpus", "CpusetMems": "cpuset-mems", "PidsLimit": "pids-limit", "UTSMode": "uts"}


def as_mapping(value: Any) -> dict[str, Any]:
    """`value` if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """`value` as text if it is a text or an integer, else an empty text."""
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def scalar_text(value: Any) -> str:
    """A scalar as Compose formats it: `true`, `8000`, `0.9`; an empty text for null and collections."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (WrittenFloat, float)):
        return f"{float(value):g}" if abs(float(value)) < 1e6 else str(value)
    return str(value) if isinstance(value, (str, int)) else ""


def host_options(inspected: Mapping[str, Any], host: Mapping[str, Any]) -> Iterator[DockerOption]:
    """The options, in the order of a plan."""
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
    # Docker sets the swap limit to twice the memory by itself.
    if isinstance(swap := host.get("MemorySwap"), int) and swap not in (0, 2 * (memory if memory else 0)):
        yield "memory-swap", "-1" if swap == -1 else _size(swap)
    if pid := as_text(host.get("PidMode")):
        yield "pid", pid
    if host.get("Init") is True:
        yield "init", None


def _size(size: int) -> str:
    """Bytes in the largest unit without a fraction: dockerd reads `24g` as 24 GiB."""
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
            address, outside = as_text(binding.get("HostIp")), as_text(binding.get("HostPort"))
            yield "publish", ":".join(filter(None, (address, outside, port)))


def _others(host: Mapping[str, Any]) -> OptionValues:
    for key, name in _LISTS.items():
        yield from ((name, as_text(value)) for value in as_list(host.get(key)))
    for device in map(as_mapping, as_list(host.get("Devices"))):
        outside, inside = as_text(device.get("PathOnHost")), as_text(device.get("PathInContainer"))
        rights = as_text(device.get("CgroupPermissions"))
        if rights not in ("", "rwm"):
            yield "device", f"{outside}:{inside}:{rights}"
        else:
            yield "device", outside if inside == outside else f"{outside}:{inside}"
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
    yield from ((name, None) for key, name in _SWITCHES.items() if host.get(key) is True)
    values = ((name, as_text(host.get(key))) for key, name in _VALUES.items())
    yield from ((name, value) for name, value in values if value not in ("", "0", "-1"))


_OWN_ENTRYPOINTS = (
    ("vllm", "serve"),
    ("python3", "-m", "vllm.entrypoints.openai.api_server"),
    ("/usr/local/bin/vllm-snapshot-entrypoint.sh",),
    ("/opt/nvidia/nvidia_entrypoint.sh",),
)
# Variables that images set. They are left out if the image is not available for comparison.
_IMAGE_VARIABLES = re.compile(
    r"PATH|HOME|HOSTNAME|LANG|LC_ALL|TERM|LD_LIBRARY_PATH|LIBRARY_PATH|DEBIAN_FRONTEND|PYTHON_\w+|PYTHONUNBUFFERED|"
    r"CUDA_(?:VERSION|HOME)|NV_\w+|NVARCH|NCCL_VERSION|UV_\w+|NVIDIA_\w+|VLLM_(?:USAGE_SOURCE|BUILD_COMMIT|IMAGE_TAG)|"
    r"TORCH_CUDA_ARCH_LIST|PIP_\w+|VIRTUAL_ENV"
)
_IMAGE_LABELS = re.compile(
    r"org\.opencontainers\..*|maintainer|com\.nvidia\..*|ai\.vllm\..*|org\.label-schema\..*|com\.docker\..*"
)
_OWN_LABELS = "gb300serve."


def from_inspect(value: Any, report: Report, image: Mapping[str, Any] | None = None) -> ImportedRecipe:
    """The recipe of an inspected container; `image` is its inspected image, if it still exists."""
    objects = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
    inspected = next((item for item in objects if isinstance(item.get("Config"), dict) and "HostConfig" in item), None)
    if inspected is None:
        message = f"{report.file} is JSON, but not the output of `docker inspect` for a container"
        raise SourceInvalidError(message, hint="docker inspect NAME > FILE, or use --container NAME")
    if len(objects) > 1:
        message = f"the file describes {len(objects)} containers: the first was imported"
        report.add(LEFT_OUT, message, "inspect one container", _AT)
    image_config = None if image is None else as_mapping(image.get("Config"))
    return _Inspected(inspected, image_config, report).read()


class _Inspected:
    def __init__(self, inspected: dict[str, Any], image: dict[str, Any] | None, report: Report) -> None:
        self.inspected, self.report = inspected, report
        self.image, self.has_image = image or {}, image is not None
        self.config, self.host = as_mapping(inspected["Config"]), as_mapping(inspected["HostConfig"])

    def read(self) -> ImportedRecipe:
        draft = Draft(self.report)
        image = self._image(draft)
        apply_options(draft, [*self._config_options(), *host_options(self.inspected, self.host)])
        words = [ExpandedWord(as_text(word), _AT) for word in as_list(self.config.get("Cmd"))]
        entrypoint = self._entrypoint()
        if entrypoint:
            draft.container["entrypoint"] = entrypoint[0]
            words = [*(ExpandedWord(word, _AT) for word in entrypoint[1:]), *words]
        return from_command(draft, image, words)

    def _image(self, draft: Draft) -> dict[str, Any]:
        name, identity = as_text(self.config.get("Image")), as_text(self.inspected.get("Image"))
        # Without a digest, the ID of the image is the pin, and no finding is needed.
        section = image_section(draft if "@" in name else Draft(Report()), ExpandedWord(name, _AT))
        if "digest" not in section and re.fullmatch(r"sha256:[0-9a-f]{64}", identity):
            section["id"] = identity
        return section

    def _config_options(self) -> Iterator[DockerOption]:
        if len(name := as_text(self.inspected.get("Name")).removeprefix("/")) > 1:
            yield DockerOption("name", name, _AT)
        for key, option in (("User", "user"), ("WorkingDir", "workdir")) if self.has_image else ():
            if (value := as_text(self.config.get(key))) and value != as_text(self.image.get(key)):
                yield DockerOption(option, value, _AT)
        if isinstance(timeout := self.config.get("StopTimeout"), int):
            yield DockerOption("stop-timeout", str(timeout), _AT)
        yield from self._env()
        yield from self._labels()
        yield from self._health()

    def _env(self) -> Iterator[DockerOption]:
        own = set(map(as_text, as_list(self.image.get("Env"))))
        left = []
        for word in map(as_text, as_list(self.config.get("Env"))):
            name, _, value = word.partition("=")
            # Without the image, only the name of a variable shows that the image sets it.
            is_known = _IMAGE_VARIABLES.fullmatch(name) and not self._selects_gpus(name, value)
            if word in own if self.has_image else is_known:
                left.append(name)
            elif name:
                yield DockerOption("env", word, _AT)
        if left and not self.has_image:
            message = f"variables that the image probably sets were left out: {', '.join(left)}"
            self.report.add(LEFT_OUT, message, "add those that the launch sets to container.env", _AT)

    def _selects_gpus(self, name: str, value: str) -> bool:
        """Whether the variable selects GPUs: only the nvidia runtime reads it."""
        return name == "NVIDIA_VISIBLE_DEVICES" and bool(value) and as_text(self.host.get("Runtime")) == "nvidia"

    def _health(self) -> Iterator[DockerOption]:
        """The health check, unless it is that of the image."""
        check = as_mapping(self.config.get("Healthcheck"))
        if not check or not self.has_image or check == self.image.get("Healthcheck"):
            return
        keys = {"interval": "Interval", "timeout": "Timeout", "start-period": "StartPeriod", "retries": "Retries"}
        values = ((name, check.get(key)) for name, key in {**keys, "start-interval": "StartInterval"}.items())
        times = {
            name: (str(value) if name == "retries" else f"{value / 1e9:g}s", _AT)
            for name, value in values
            if isinstance(value, int) and value > 0
        }
        yield from health_options([as_text(word) for word in as_list(check.get("Test"))], times, _AT)

    def _labels(self) -> Iterator[DockerOption]:
        own = as_mapping(self.image.get("Labels"))
        for key, value in as_mapping(self.config.get("Labels")).items():
            of_image = own.get(key) == value if self.has_image else _IMAGE_LABELS.fullmatch(key)
            if not of_image and not key.startswith((_OWN_LABELS, "com.docker.")):
                yield DockerOption("label", f"{key}={as_text(value)}", _AT)

    def _entrypoint(self) -> tuple[str, ...]:
        entrypoint = tuple(map(as_text, as_list(self.config.get("Entrypoint"))))
        if self.has_image:
            return () if list(entrypoint) == as_list(self.image.get("Entrypoint")) else entrypoint
        if entrypoint in _OWN_ENTRYPOINTS or not entrypoint:
            return ()
        if len(entrypoint) > 1:
            message = f"the entrypoint {shorten(' '.join(entrypoint))} probably belongs to the image: it was left out"
            self.report.add(LEFT_OUT, message, "`docker run --entrypoint` sets a single word", _AT)
            return ()
        return entrypoint
