"""Rules for nodes, ports and container settings."""

import re
from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.core.text import suggestion
from gb300serve.engines.registry import engine
from gb300serve.lint.subject import LintSubject, gpu_count, option_path, rule, vllm_rule
from gb300serve.plan.model import parse_size

# By the names that the engines take, vLLM's first, SGLang's second.
_TENSOR = ("tensor_parallel_size", "tp_size", "tp")
_PIPELINE = ("pipeline_parallel_size", "pp_size", "pp")
# Data parallelism counts in other ways, from engine to engine.
_OTHER = ("data_parallel_size", "dp_size", "dp")


@rule("NOD001", "error")
def nodes_not_used(subject: LintSubject) -> Iterator[Finding]:
    """The number of GPUs does not match the parallel sizes.

    Why: Tensor size times pipeline size is the number of GPUs that hold the model. With too few the engine waits for
    GPUs, with too many machines stay idle or the start fails. `gpus: all` counts as one GPU per Station.
    Fix: Write `pipeline_parallel_size: n` (SGLang: `pp_size: n`) with `nodes: n`, and the tensor size of one machine.
    """
    nodes, gpus = subject.recipe.nodes, subject.container.gpus
    per_node = 1 if gpus is None else gpu_count(gpus)
    if nodes == 1 or any(name in subject.options for name in _OTHER):
        return
    tensor, pipeline = _size(subject, _TENSOR), _size(subject, _PIPELINE)
    if tensor * pipeline != nodes * per_node:
        message = (
            f"the model is split over {tensor} x {pipeline} GPUs (tensor x pipeline), "
            f"and {nodes} nodes with {per_node} each have {nodes * per_node}"
        )
        names = (_PIPELINE[0], _TENSOR[0]) if subject.is_vllm else (_PIPELINE[1], _TENSOR[1])
        yield Finding(("nodes",), message, f"write {names[0]}: {nodes}, and {names[1]}: {per_node}")


@rule("NOD002", "warning")
def nodes_without_host_network(subject: LintSubject) -> Iterator[Finding]:
    """A release for several machines does not use the host network.

    Why: The engines and NCCL choose ports at startup, and a bridge network does not publish them.
    Fix: Write `network: host`.
    """
    if subject.recipe.nodes > 1 and subject.container.network != "host":
        message = "the machines of one model cannot reach each other"
        yield Finding(("container", "network"), message, "write network: host")


def _size(subject: LintSubject, names: tuple[str, ...]) -> int:
    given = [subject.options[name] for name in names if name in subject.options]
    return given[0] if given and isinstance(given[0], int) else 1


_PORT = re.compile(
    r"(?:(?P<address>\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-fA-F:]+\]|localhost):)?(?:(?P<host>\d+(?:-\d+)?)?:)?"
    r"(?P<inside>\d+(?:-\d+)?)(?:/(?:tcp|udp|sctp))?"
)
_EVERYWHERE = "0.0.0.0"  # noqa: S104 - what Docker means, not an address that is bound
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def _bridged(subject: LintSubject) -> bool:
    """Whether the engine is reached through published ports, and its port is known."""
    network = subject.container.network or ""
    return network not in ("host", "none") and not network.startswith("container:") and not subject.starts_itself


def _inside(subject: LintSubject) -> int:
    return engine(subject.recipe.engine.name).port(subject.options)


@rule("PRT001", "error")
def not_a_port(subject: LintSubject) -> Iterator[Finding]:
    """A published port is not valid for Docker.

    Why: Docker rejects the command (`invalid containerPort`), and nothing starts.
    Fix: Write "HOST:CONTAINER", such as "8021:8000". Add an address in front to listen on that address only.
    """
    for index, port in enumerate(subject.container.ports):
        match = _PORT.fullmatch(port)
        if match is None or not all(map(_valid, filter(None, (match["host"], match["inside"])))):
            hint = 'write for example "8021:8000"'
            yield Finding(("container", "ports", index), f"`{port}` is not HOST:CONTAINER", hint)


def _valid(numbers: str) -> bool:
    first, _, last = numbers.partition("-")
    return len(numbers) < 12 and 0 < int(first) <= int(last or first) <= 65535


@rule("PRT002", "error")
def port_published_twice(subject: LintSubject) -> Iterator[Finding]:
    """Two published ports use the same host port.

    Why: Docker creates the container but cannot start it (`port is already allocated`).
    Fix: Use different host ports.
    """
    published: dict[tuple[str, str, str], str] = {}
    for index, port in enumerate(subject.container.ports):
        match = _PORT.fullmatch(port)
        if match is None or match["host"] is None:
            continue
        binding = (match["address"] or _EVERYWHERE, match["host"], port.partition("/")[2] or "tcp")
        clash = next((other for key, other in published.items() if _same(binding, key)), None)
        if clash is not None:
            message = f"`{port}` and `{clash}` use the same host port"
            yield Finding(("container", "ports", index), message, "change one of them")
        published[binding] = port


def _same(one: tuple[str, str, str], other: tuple[str, str, str]) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or _EVERYWHERE in (one[0], other[0]))


@rule("PRT003", "warning")
def ports_on_host_network(subject: LintSubject) -> Iterator[Finding]:
    """Ports are published although the container uses the host network.

    Why: Docker discards published ports on the host network. The engine listens on its own port.
    Fix: Remove `ports` or the host network.
    """
    if subject.container.ports and subject.container.network == "host":
        message = f"with network host the ports are discarded: the engine listens on {_inside(subject)}"
        yield Finding(("container", "ports"), message, "remove ports, or network", of_key=True)


@rule("PRT004", "warning")
def engine_port_not_published(subject: LintSubject) -> Iterator[Finding]:
    """No published port leads to the engine.

    Why: The lane boots and reports READY, but no client can reach it.
    Fix: Publish the engine's port: "HOST:PORT".
    """
    inside = _inside(subject)
    ports = [match["inside"] for port in subject.container.ports if (match := _PORT.fullmatch(port))]
    if _bridged(subject) and not any(_leads_to(port, inside) for port in ports):
        place = ("container", "ports") if subject.container.ports else ("container",)
        hint = f'add ports: ["{inside}:{inside}"], or network: host'
        yield Finding(place, f"no published port leads to engine port {inside}", hint, of_key=True)


def _leads_to(inside: str, port: int) -> bool:
    first, _, last = inside.partition("-")
    return int(first) <= port <= int(last or first)


@rule("PRT005", "warning")
def listens_inside_only(subject: LintSubject) -> Iterator[Finding]:
    """The engine listens on the container's loopback interface only.

    Why: Published ports arrive at another interface of the container, so every connection is reset.
    Fix: Write `host: 0.0.0.0` (or omit it for vLLM), and restrict access with an address in `ports`.
    """
    host = subject.options.get("host", engine(subject.recipe.engine.name).default_host)
    if _bridged(subject) and subject.container.ports and host in _LOOPBACK:
        given = "host" in subject.options
        place, hint = (option_path("host"), "write 0.0.0.0") if given else (("engine", "options"), "add host: 0.0.0.0")
        yield Finding(place, f"on {host} the engine is reachable only inside the container", hint, of_key=not given)


_CHOOSERS = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
# Docker kills what has not ended 10 s after its stop.
_STOP_TIMEOUT = 10
_LEAST_SIZE = 1 << 20


@rule("CON001", "warning")
def restart_always(subject: LintSubject) -> Iterator[Finding]:
    """The restart policy restarts a stopped lane, or never takes effect.

    Why: With `always` a container that was stopped on purpose starts again with the daemon and takes the GPU from the
    running lane. With `on-failure` a dead engine stays dead, because vLLM exits with 0.
    Fix: Write `unless-stopped`.
    """
    policy = subject.container.restart or "no"
    message = "restart always restarts a lane that was stopped on purpose" if policy == "always" else None
    if policy.startswith("on-failure") and subject.is_vllm:
        message = "restart on-failure has no effect: the server exits with 0 when its engine dies"
    if message is not None:
        yield Finding(("container", "restart"), message, "write unless-stopped")


@rule("CON002", "warning")
def cuda_visible_devices(subject: LintSubject) -> Iterator[Finding]:
    """A variable selects GPUs that Docker has already selected.

    Why: Docker numbers the container's GPUs from 0, and CUDA_VISIBLE_DEVICES selects among those: the engine may see
    none or the wrong one. NVIDIA_VISIBLE_DEVICES overrides `--gpus`.
    Fix: Remove the variable and use `container.gpus`.
    """
    for name in _CHOOSERS:
        if name in subject.container.env and not (name == _CHOOSERS[1] and subject.container.gpus is None):
            message = f"{name} chooses again among the GPUs that container.gpus chose"
            hint = "remove it; container.gpus takes {name: GB300}"
            yield Finding(("container", "env", name), message, hint, of_key=True)


@rule("CON003", "warning")
def gpu_by_index(subject: LintSubject) -> Iterator[Finding]:
    """A GPU is selected by index.

    Why: The order differs between machines and boots. The GB300 had index 1 on one Station and 0 on another.
    Fix: Write `{name: GB300}` and put the UUID into the site file.
    """
    gpus = subject.container.gpus
    if gpus is not None and gpus.by == "index":
        yield Finding(("container", "gpus"), "a GPU's index differs between machines", "write {name: GB300}")


@rule("CON004", "note", pedantic=True)
def all_gpus(subject: LintSubject) -> Iterator[Finding]:
    """The container gets every GPU of the machine.

    Why: A Station also has a display GPU. If the system does not hide it, the engine may use it as a second GPU.
    Fix: Write `{name: GB300}`.
    """
    gpus = subject.container.gpus
    if gpus is not None and (gpus.by == "all" or (gpus.by == "count" and gpus.values != (1,))):
        yield Finding(("container", "gpus"), "the container may also get the display GPU", "write {name: GB300}")


@rule("CON005", "warning")
def no_gpu(subject: LintSubject) -> Iterator[Finding]:
    """The container gets no GPU.

    Why: The engine finds no device and exits within seconds.
    Fix: Add `gpus: {name: GB300}`.
    """
    if subject.container.gpus is None and not subject.container.devices and _CHOOSERS[1] not in subject.container.env:
        message = "container.gpus is not set: the container would see no GPU"
        yield Finding(("container",), message, "add `gpus: {name: GB300}`", of_key=True)


@rule("CON006", "warning")
def nameless_container(subject: LintSubject) -> Iterator[Finding]:
    """The container has no name.

    Why: Docker picks a random name at each start. A second launch is not refused, and scripts cannot find the lane.
    Fix: Add `name:`.
    """
    if subject.container.name is None:
        message = "container.name is not set: Docker will pick a random name"
        yield Finding(("container",), message, "add `name:`", of_key=True)


@vllm_rule("CON007", "warning")
def shared_memory_small(subject: LintSubject) -> Iterator[Finding]:
    """Several ranks share 64 MiB of shared memory.

    Why: Without `ipc: host` or `shm_size` Docker provides 64 MiB of /dev/shm, and ranks need 160 MiB or more
    (`Insufficient space in /dev/shm`).
    Fix: Write `ipc: host` or `shm_size: 32g`.
    """
    ranks = max(subject.vllm.tensor_parallel_size, subject.vllm.data_parallel_size)
    if ranks > 1 and subject.container.ipc is None and subject.container.shm_size is None:
        hint = "write `ipc: host` or `shm_size: 32g`"
        yield Finding(("container",), "the ranks share 64 MiB of /dev/shm", hint, of_key=True)


@rule("CON008", "note")
def shm_size_without_effect(subject: LintSubject) -> Iterator[Finding]:
    """`shm_size` has no effect with `ipc: host`.

    Why: In the host's IPC namespace the container uses the host's /dev/shm, whatever its size.
    Fix: Remove one of them.
    """
    if subject.container.ipc == "host" and subject.container.shm_size is not None:
        yield Finding(("container", "shm_size"), "shm_size has no effect with ipc: host", "remove it", of_key=True)


@vllm_rule("CON009", "warning")
def killed_before_drained(subject: LintSubject) -> Iterator[Finding]:
    """Docker kills the server before it has drained.

    Why: `shutdown_timeout` lets running requests finish. Docker waits for `stop_timeout` (10 s by default) and then
    kills the server.
    Fix: Write a `stop_timeout` above `shutdown_timeout`.
    """
    drain = subject.options.get("shutdown_timeout")
    patience = subject.container.stop_timeout if subject.container.stop_timeout is not None else _STOP_TIMEOUT
    if isinstance(drain, int) and drain >= patience:
        message = f"the server drains for {drain} s, but Docker kills it after {patience} s"
        yield Finding(option_path("shutdown_timeout"), message, f"add `stop_timeout: {drain + 10}` to the container")


@rule("CON010", "error")
def not_a_size(subject: LintSubject) -> Iterator[Finding]:
    """A size is not valid for Docker, or has no unit.

    Why: Docker rejects `huge` at launch and reads a number without a unit as bytes: `shm_size: "16"` is 16 bytes.
    Fix: Write a number and a unit: 512m, 16g.
    """
    for name in ("shm_size", "memory", "memory_swap"):
        value = getattr(subject.container, name)
        if (name, value) == ("memory_swap", "-1"):  # unlimited
            continue
        size = parse_size(value) if value is not None else None
        if value is not None and size is None:
            hint = "write a number and a unit, for example 16g"
            yield Finding(("container", name), f"`{value}` is not a valid size", hint)
        elif size is not None and not size.unit and 0 < size.bytes < _LEAST_SIZE:  # 0 leaves the choice to Docker
            hint = f"write a unit, for example {size.number}g"
            yield Finding(("container", name), f"`{value}` is {size.number} bytes", hint)


# Docker's modes; of a namespace that another container has, only the form is checked.
_MODES = {
    "ipc": re.compile(r"none|private|shareable|host|container:.+"),
    "pid": re.compile(r"host|container:.+"),
    "network": re.compile(r"none|bridge|host|default|container:.+|[A-Za-z0-9][A-Za-z0-9_.-]*"),
}


_HOST_MODES = ("host", "none", "private", "shareable", "bridge", "default")


@rule("CON011", "error")
def not_a_mode(subject: LintSubject) -> Iterator[Finding]:
    """The ipc, pid or network mode is not valid for Docker.

    Why: Docker rejects the container (`invalid IPC mode`), and modes are case-sensitive: `Host` is not `host`, and as
    a network it is the name of one that does not exist.
    Fix: Write `host`, or another mode of Docker in lower case.
    """
    for name, modes in _MODES.items():
        mode: str | None = getattr(subject.container, name)
        meant = mode.strip().lower() if mode is not None else ""
        if mode is None or (modes.fullmatch(mode) and (meant == mode or meant not in _HOST_MODES)):
            continue
        close = suggestion(meant, filter(modes.fullmatch, _HOST_MODES)) or "host"
        yield Finding(("container", name), f"`{mode}` is not a valid {name} mode", f"write {close}")


# capabilities(7) and setrlimit(2), as Docker names them.
_CAPABILITIES = frozenset(
    {
        "ALL", "AUDIT_CONTROL", "AUDIT_READ", "AUDIT_WRITE", "BLOCK_SUSPEND", "BPF", "CHECKPOINT_RESTORE",
        "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "IPC_LOCK", "IPC_OWNER", "KILL",
        "LEASE", "LINUX_IMMUTABLE", "MAC_ADMIN", "MAC_OVERRIDE", "MKNOD", "NET_ADMIN", "NET_BIND_SERVICE",
        "NET_BROADCAST", "NET_RAW", "PERFMON", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYSLOG", "SYS_ADMIN",
        "SYS_BOOT", "SYS_CHROOT", "SYS_MODULE", "SYS_NICE", "SYS_PACCT", "SYS_PTRACE", "SYS_RAWIO",
        "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "WAKE_ALARM",
    }
)  # fmt: skip
_ULIMITS = frozenset(
    {
        "core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss",
        "rtprio", "rttime", "sigpending", "stack",
    }
)  # fmt: skip


@rule("CON012", "error")
def name_unknown_to_docker(subject: LintSubject) -> Iterator[Finding]:
    """Docker does not know the capability or the limit.

    Why: Docker rejects the container (`unknown capability`, `invalid ulimit type`). Limits are in lower case.
    Fix: Write the name as in `docker run --help`.
    """
    for index, name in enumerate(subject.container.cap_add):
        capability = name.upper().removeprefix("CAP_")
        if capability not in _CAPABILITIES:
            close = suggestion(capability, _CAPABILITIES)
            hint = f"write {close}" if close else "the manual page capabilities(7) lists them"
            yield Finding(("container", "cap_add", index), f"`{name}` is not a capability", hint, fix=close)
    for name in subject.container.ulimits:
        if name not in _ULIMITS:
            close = suggestion(name.lower(), _ULIMITS)
            hint = f"write {close}" if close else f"write one of {', '.join(sorted(_ULIMITS))}"
            yield Finding(("container", "ulimits", name), f"`{name}` is not a limit", hint, of_key=True, fix=close)


@rule("CON013", "warning")
def privileged(subject: LintSubject) -> Iterator[Finding]:
    """The container is privileged.

    Why: A privileged container can change the whole machine, and it sees every GPU: `--gpus` no longer limits it.
    Fix: Remove `privileged`, and write what the engine needs: `cap_add: [IPC_LOCK]`, `devices`, `security_opt`.
    """
    if subject.container.privileged:
        hint = "write what the engine needs: cap_add, devices or security_opt"
        yield Finding(("container", "privileged"), "a privileged container controls the whole machine", hint)
