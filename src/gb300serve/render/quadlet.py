"""Plan → a Podman unit, `NAME.container`, as podman-systemd.unit(5) describes it."""

import re
from collections.abc import Collection, Iterable, Iterator

from gb300serve.plan.model import SECRET, ContainerPlan, HealthCheck, Plan, Secret, mount_argument, ulimit_argument
from gb300serve.render import target
from gb300serve.render.docker_run import flag_groups, shell_value

# Characters that need no quotes anywhere in a value; `#` and `;` begin a comment on a continued line.
_PLAIN = re.compile(r"[A-Za-z0-9_./:@,+=-][A-Za-z0-9_./:@,+=-]*")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
# systemd cuts or changes an unquoted value at control characters, outer whitespace, quotes and backslashes.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]|^\s|\s$|\\|^[\"']")


def escape_specifiers(text: str) -> str:
    """`%` begins a specifier and `$` a variable; doubled, they are literal."""
    return text.replace("%", "%%").replace("$", "$$")


def _quoted(text: str, written: str) -> str:
    return written if _PLAIN.fullmatch(text) else f'"{"".join(map(_escaped, written))}"'


def _escaped(c: str) -> str:
    return _ESCAPES.get(c) or (c if " " <= c != "\x7f" else f"\\x{ord(c):02x}")


def assignment(key: str, *words: str) -> str:
    """`Key=word word`, for keys whose value systemd splits into words."""
    return f"{key}=" + " ".join(_quoted(word, escape_specifiers(word)) for word in words)


def raw_lines(key: str, value: str | None, flag: str | None = None) -> Iterator[str]:
    """`Key=value`, for keys whose value is read unquoted; unsafe values become an option of `podman run`."""
    if not value:
        return
    if not _UNSAFE.search(value):
        yield f"{key}={escape_specifiers(value)}"
    elif flag:
        yield assignment("PodmanArgs", f"{flag}={value}")
    else:
        yield assignment(key, value)


def exec_lines(words: Iterable[str], secrets: Collection[str]) -> Iterator[str]:
    """`Exec=`, one flag per line; a declared secret becomes the systemd variable of its name."""

    def written(word: str) -> str:
        return _quoted(word, target.substitute_secrets(word, "${{{}}}".format, escape_specifiers, secrets))

    first, *rest = (" ".join(map(written, group)) for group in flag_groups(words))
    lines = [f"Exec={first}", *(f"  {line}" for line in rest)]
    yield from (f"{line} \\" for line in lines[:-1])
    yield lines[-1]


Lines = Iterator[str]

_RESTARTS = {"always": "always", "unless-stopped": "always", "on-failure": "on-failure"}


def quadlet(plan: Plan, service: target.TargetService) -> target.Rendered:
    """The unit. It needs Podman 5.3 (`Notify=healthy`, `Entrypoint=`, `LogOpt=`)."""
    gaps = tuple(_gaps(plan))
    name = plan.container.name or plan.lane
    start = (
        f"Save it as /etc/containers/systemd/{name}.container (or in ~/.config/containers/systemd/), then",
        f"run `systemctl daemon-reload && systemctl start {name}`. Needs Podman 5.3 and a CDI specification.",
    )
    sections = (_unit(plan), _container(plan, service), _service(plan, service), _install(plan.container))
    text = "\n".join("\n".join(lines) + "\n" for section in sections if (lines := list(section)))
    return target.Rendered(target.file_header(plan, "a Podman unit", start, gaps) + text, gaps)


def image_name(image: str) -> str:
    """The image with its registry: for a name without one, Podman tries the registries of the machine in turn."""
    first, slash, _ = image.partition("/")
    if not slash:
        return f"docker.io/library/{image}"
    return image if "." in first or ":" in first or first == "localhost" else f"docker.io/{image}"


def _unit(plan: Plan) -> Lines:
    yield "[Unit]"
    yield f"Description={plan.recipe}"
    name, _, retries = plan.container.restart.partition(":")
    if name == "on-failure" and retries:
        # The first start counts too, and a boot takes longer than the default interval (10 s).
        yield "StartLimitIntervalSec=infinity"
        yield f"StartLimitBurst={int(retries) + 1}"


def _container(plan: Plan, service: target.TargetService) -> Lines:
    c = plan.container
    yield "[Container]"
    yield from raw_lines("Image", image_name(plan.image))
    yield from raw_lines("ContainerName", c.name, "--name")
    yield from _gpus(c.gpus)
    yield from _podman("--ipc", c.ipc)
    yield from raw_lines("Network", c.network, "--network")
    yield from raw_lines("ShmSize", c.shm_size, "--shm-size")
    for name, limit in c.ulimits.items():
        yield from raw_lines("Ulimit", ulimit_argument(name, limit), "--ulimit")
    if c.cap_add:
        yield assignment("AddCapability", *c.cap_add)
    for option in c.security_opt:
        yield from _podman("--security-opt", option)
    if c.privileged:
        yield "PodmanArgs=--privileged"
    if c.init:
        yield "RunInit=true"
    if c.stop_timeout is not None:
        yield f"StopTimeout={c.stop_timeout}"
    yield from _user(c.user)
    for group in c.group_add:
        yield from _podman("--group-add", group)
    yield from raw_lines("WorkingDir", c.workdir, "--workdir")
    yield from _podman("--pid", c.pid)
    yield from _podman("--memory", c.memory)
    yield from _podman("--cpuset-cpus", c.cpuset_cpus)
    yield from _podman("--memory-swap", c.memory_swap)
    yield from _storage(c)
    yield from _environment(c)
    yield from raw_lines("Entrypoint", c.entrypoint, "--entrypoint")
    yield from _health(c.healthcheck, service)
    if plan.command:
        yield from exec_lines(plan.command, {secret.name for secret in c.secrets})


def _podman(flag: str, value: str | None) -> Lines:
    """An option of `podman run` that has no key."""
    return iter([assignment("PodmanArgs", f"{flag}={value}")] if value else [])


def _gpus(selection: str | None) -> Lines:
    if selection is None:
        return
    is_count = selection != "all" and not selection.startswith("device=")
    names = map(str, range(int(selection))) if is_count else selection.removeprefix("device=").split(",")
    for name in names:
        yield from raw_lines("AddDevice", f"nvidia.com/gpu={name}", "--device")


def _user(user: str | None) -> Lines:
    if user:
        name, _, group = user.partition(":")
        yield assignment("User", name)
        if group:
            yield assignment("Group", group)


def _storage(c: ContainerPlan) -> Lines:
    for path in c.tmpfs:
        yield from raw_lines("Tmpfs", path, "--tmpfs")
    yield from raw_lines("LogDriver", c.log_driver, "--log-driver")
    for key, value in c.log_options.items():
        yield from raw_lines("LogOpt", f"{key}={value}", "--log-opt")
    for device in c.devices:
        yield from raw_lines("AddDevice", device, "--device")
    for key, value in c.labels.items():
        yield assignment("Label", f"{key}={value}")
    for port in c.ports:
        yield from raw_lines("PublishPort", port, "--publish")
    for host in c.add_host:
        yield from _podman("--add-host", host)
    for mount in c.mounts:
        yield from raw_lines("Volume", mount_argument(mount), "--volume")


def _environment(c: ContainerPlan) -> Lines:
    for name, value in c.env.items():
        yield assignment("Environment", f"{name}={value}")
    for secret in c.secrets:
        yield f"Secret={secret.name},type=env,target={secret.name}"


def _health(check: HealthCheck | None, service: target.TargetService) -> Lines:
    """The check of the recipe, else one that waits for the boot."""
    if check is None:
        # Podman adds CMD itself; if the value contained it, Podman would split the command at spaces.
        yield f'HealthCmd=["python3","-c","{service.health_program}"]'
        yield from ("HealthInterval=30s", "HealthTimeout=10s", "HealthRetries=3")
        yield f"HealthStartPeriod={service.patience}s"
        # The unit becomes active when the engine answers, not when its container starts.
        yield "Notify=healthy"
        return
    yield from raw_lines("HealthCmd", "none" if check.disable else check.test, "--health-cmd")
    yield from raw_lines("HealthInterval", check.interval)
    yield from raw_lines("HealthTimeout", check.timeout)
    yield from raw_lines("HealthStartPeriod", check.start_period)
    yield from raw_lines("HealthRetries", None if check.retries is None else str(check.retries))


def _service(plan: Plan, service: target.TargetService) -> Lines:
    yield "[Service]"
    yield f"TimeoutStartSec={service.patience}"
    if plan.container.stop_timeout is not None:
        # systemd must wait longer than Podman before it sends SIGKILL.
        yield f"TimeoutStopSec={plan.container.stop_timeout + 15}"
    name = plan.container.restart.partition(":")[0]
    yield f"Restart={_RESTARTS.get(name, 'no')}"
    if _secrets_in_command(plan):
        yield f"EnvironmentFile=%E/gb300serve/{plan.lane}.env"


def _install(c: ContainerPlan) -> Lines:
    if c.restart in ("always", "unless-stopped"):
        yield from ("[Install]", "WantedBy=multi-user.target default.target")


def _secrets_in_command(plan: Plan) -> tuple[Secret, ...]:
    used = {name for text in plan.command for name in SECRET.findall(text)}
    return tuple(secret for secret in plan.container.secrets if secret.name in used)


def _gaps(plan: Plan) -> Iterator[target.Gap]:
    c = plan.container
    yield from target.common_gaps(plan)
    yield from target.single_machine_gaps(plan, "a Podman unit")
    hint = "its log is kept in the journal: journalctl"
    yield target.different("name", "Podman removes the container when it ends", hint)
    if c.gpus and c.gpus.isdecimal():
        yield target.different("gpus", f"the unit selects the first {c.gpus} GPUs by index", "select GPUs by UUID")
    elif c.gpus:
        hint = "create the specification: nvidia-ctk cdi generate"
        yield target.different("gpus", "Podman selects GPUs through CDI", hint)
    if c.healthcheck is not None:
        yield target.different(
            "healthcheck", "the unit becomes active when its container starts, not when it is healthy"
        )
    if c.healthcheck is not None and c.healthcheck.start_interval:
        yield target.omitted("healthcheck", "start_interval is omitted: a unit has no key for it")
    if c.restart != "no":
        yield target.different("restart", target.RESTART_MESSAGE.format(c.restart))
    for secret in c.secrets:
        message = f"{secret.name} must exist as a Podman secret"
        create = f'printf %s "{shell_value(secret)}" | podman secret create {secret.name} -'
        yield target.Gap(target.TO_DO, ("container", "secrets", secret.name), message, create)
    for secret in _secrets_in_command(plan):
        hint = f"add {secret.name}=VALUE to /etc/gb300serve/{plan.lane}.env, readable only by root"
        message = f"systemd must set {secret.name} for the engine's command"
        yield target.Gap(target.TO_DO, ("container", "secrets", secret.name), message, hint)
    if ";" in plan.command:
        message = "Podman's generator does not quote the argument `;`, so systemd ends the command there"
        yield target.omitted("command", message)
