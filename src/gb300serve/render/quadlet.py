"""Plan → a Podman unit, `NAME.container`, as podman-systemd.unit(5) describes it. Pure."""

import re
from collections.abc import Collection, Iterable, Iterator

from gb300serve.plan.model import SECRET, ContainerPlan, Plan, Secret, mount_argument, ulimit_argument
from gb300serve.render.docker_run import client_file
from gb300serve.render.target import (
    HEALTH_PATH,
    TO_DO,
    Gap,
    Rendered,
    TargetService,
    binds,
    changed,
    common_gaps,
    head,
    lost,
    one_machine,
    with_secrets,
)

# What needs no quotes in any place of a unit's value; `#` and `;` would begin a comment on a continued line.
_PLAIN = re.compile(r"[A-Za-z0-9_./:@,+=-][A-Za-z0-9_./:@,+=-]*")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
# A value that is taken as it stands is cut or changed at control characters, at blanks round them, at a last `\`.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]|^\s|\s$|\\|^[\"']")


def word(text: str) -> str:
    """One word of a value that is split into words; Podman passes it on to a command line of systemd's."""
    return _quoted(text, doubled(text))


def doubled(text: str) -> str:
    """`%` begins a specifier and `$` a variable; twice, each is itself."""
    return text.replace("%", "%%").replace("$", "$$")


def _quoted(text: str, written: str) -> str:
    if _PLAIN.fullmatch(text):
        return written
    return '"' + "".join(map(_escaped, written)) + '"'


def _escaped(c: str) -> str:
    return _ESCAPES.get(c) or (c if " " <= c != "\x7f" else f"\\x{ord(c):02x}")


def assignment(key: str, *words: str) -> str:
    """`Key=word word`, for keys whose value is split into words."""
    return f"{key}=" + " ".join(map(word, words))


def raw(key: str, value: str | None, flag: str | None = None) -> Iterator[str]:
    """`Key=value`, for keys whose value is taken as it stands.

    What would not survive there goes through the option of `podman run`, whose words are quoted; nothing without value.
    """
    if not value:
        return
    if not _UNSAFE.search(value):
        yield f"{key}={doubled(value)}"
    elif flag:
        yield assignment("PodmanArgs", f"{flag}={value}")
    else:
        yield assignment(key, value)


def exec_lines(words: Iterable[str], secrets: Collection[str]) -> Iterator[str]:
    """`Exec=`, one flag a line; a declared secret is the variable of its name, which systemd fills in."""
    groups: list[list[str]] = []
    for text in words:
        if text.startswith("--") or not groups:
            groups.append([])
        written = with_secrets(text, "${{{}}}".format, doubled, secrets)
        groups[-1].append(_quoted(text, written))
    first, *rest = (" ".join(group) for group in groups)
    lines = [f"Exec={first}", *(f"  {line}" for line in rest)]
    yield from (f"{line} \\" for line in lines[:-1])
    yield lines[-1]


Lines = Iterator[str]

_RESTARTS = {"always": "always", "unless-stopped": "always", "on-failure": "on-failure"}


def quadlet(plan: Plan, serving: TargetService) -> Rendered:
    """The unit; it needs Podman 5.3 (`Notify=healthy`, `Entrypoint=`, `LogOpt=`)."""
    gaps = tuple(_gaps(plan))
    name = plan.container.name or plan.lane
    start = (
        f"Put it at /etc/containers/systemd/{name}.container (or ~/.config/containers/systemd/), then",
        f"`systemctl daemon-reload && systemctl start {name}`. It needs Podman 5.3 and NVIDIA's CDI specification.",
    )
    sections = (_unit(plan), _container(plan, serving), _service(plan, serving), _install(plan.container))
    text = "\n".join("\n".join(lines) + "\n" for section in sections if (lines := list(section)))
    return Rendered(head(plan, "a Podman unit", start, gaps) + text, gaps)


def image_name(image: str) -> str:
    """The image with its registry: Podman has none of its own to add, and tries those of the machine in turn."""
    first, slash, _ = image.partition("/")
    if not slash:
        return f"docker.io/library/{image}"
    return image if "." in first or ":" in first or first == "localhost" else f"docker.io/{image}"


def _unit(plan: Plan) -> Lines:
    yield "[Unit]"
    yield f"Description={plan.recipe}"
    name, _, retries = plan.container.restart.partition(":")
    if name == "on-failure" and retries:
        # The first start counts too, and a boot lasts longer than any interval that systemd would forget it after.
        yield "StartLimitIntervalSec=infinity"
        yield f"StartLimitBurst={int(retries) + 1}"


def _container(plan: Plan, serving: TargetService) -> Lines:
    c = plan.container
    yield "[Container]"
    yield from raw("Image", image_name(plan.image))
    yield from raw("ContainerName", c.name, "--name")
    yield from _gpus(c.gpus)
    yield from _podman("--ipc", c.ipc)
    yield from raw("Network", c.network, "--network")
    yield from raw("ShmSize", c.shm_size, "--shm-size")
    for name, limit in c.ulimits.items():
        yield from raw("Ulimit", ulimit_argument(name, limit), "--ulimit")
    if c.cap_add:
        yield assignment("AddCapability", *c.cap_add)
    for option in c.security_opt:
        yield from _podman("--security-opt", option)
    if c.init:
        yield "RunInit=true"
    if c.stop_timeout is not None:
        yield f"StopTimeout={c.stop_timeout}"
    yield from _user(c.user)
    yield from raw("WorkingDir", c.workdir, "--workdir")
    yield from _podman("--pid", c.pid)
    yield from _podman("--memory", c.memory)
    yield from _storage(c)
    yield from _environment(c)
    yield from raw("Entrypoint", c.entrypoint, "--entrypoint")
    yield from _health(serving)
    if plan.command:
        yield from exec_lines(plan.command, {secret.name for secret in c.secrets})


def _podman(flag: str, value: str | None) -> Lines:
    """An option of `podman run` that has no key of its own."""
    if value:
        yield assignment("PodmanArgs", f"{flag}={value}")


def _gpus(selection: str | None) -> Lines:
    if selection is None:
        return
    if selection.startswith("device="):
        names = selection.removeprefix("device=").split(",")
    elif selection == "all":
        names = ["all"]
    else:
        names = [str(index) for index in range(int(selection))]
    for name in names:
        yield from raw("AddDevice", f"nvidia.com/gpu={name}", "--device")


def _user(user: str | None) -> Lines:
    if user:
        name, _, group = user.partition(":")
        yield assignment("User", name)
        if group:
            yield assignment("Group", group)


def _storage(c: ContainerPlan) -> Lines:
    for path in c.tmpfs:
        yield from raw("Tmpfs", path, "--tmpfs")
    yield from raw("LogDriver", c.log_driver, "--log-driver")
    for key, value in c.log_options.items():
        yield from raw("LogOpt", f"{key}={value}", "--log-opt")
    for device in c.devices:
        yield from raw("AddDevice", device, "--device")
    for key, value in c.labels.items():
        yield assignment("Label", f"{key}={value}")
    for port in c.ports:
        yield from raw("PublishPort", port, "--publish")
    for mount in binds(c):
        yield from raw("Volume", mount_argument(mount), "--volume")


def _environment(c: ContainerPlan) -> Lines:
    for name, value in c.env.items():
        yield assignment("Environment", f"{name}={value}")
    for secret in c.secrets:
        yield f"Secret={secret.name},type=env,target={secret.name}"


def _health(serving: TargetService) -> Lines:
    url = f"http://127.0.0.1:{serving.port}{HEALTH_PATH}"
    # Podman puts CMD before it by itself; with a CMD of ours it would split the words at blanks.
    ask = f"import urllib.request; urllib.request.urlopen('{url}', timeout=5)"
    yield f'HealthCmd=["python3","-c","{ask}"]'
    yield "HealthInterval=30s"
    yield "HealthTimeout=10s"
    yield "HealthRetries=3"
    yield f"HealthStartPeriod={serving.patience}s"
    # The unit is active when the engine answers, not when its container runs.
    yield "Notify=healthy"


def _service(plan: Plan, serving: TargetService) -> Lines:
    yield "[Service]"
    yield f"TimeoutStartSec={serving.patience}"
    if plan.container.stop_timeout is not None:
        # systemd must wait longer than Podman does before it kills.
        yield f"TimeoutStopSec={plan.container.stop_timeout + 15}"
    name = plan.container.restart.partition(":")[0]
    yield f"Restart={_RESTARTS.get(name, 'no')}"
    if _secrets_in_command(plan):
        yield f"EnvironmentFile=%E/gb300serve/{plan.lane}.env"


def _install(c: ContainerPlan) -> Lines:
    if c.restart in ("always", "unless-stopped"):
        yield "[Install]"
        yield "WantedBy=multi-user.target default.target"


def _secrets_in_command(plan: Plan) -> tuple[Secret, ...]:
    spoken = {name for text in plan.command for name in SECRET.findall(text)}
    return tuple(secret for secret in plan.container.secrets if secret.name in spoken)


def _gaps(plan: Plan) -> Iterator[Gap]:
    c = plan.container
    yield from common_gaps(plan)
    yield from one_machine(plan, "a Podman unit")
    yield changed("name", "Podman removes the container when it ends; its log stays in the journal")
    if c.gpus and c.gpus.isdecimal():
        yield changed("gpus", f"a count is not a choice here: the first {c.gpus} are named", "name them by UUID")
    elif c.gpus:
        yield changed("gpus", "named by the Container Device Interface", "nvidia-ctk cdi generate")
    if c.restart != "no":
        yield changed("restart", f"`{c.restart}` holds from the start, not from READY: a boot that fails is repeated")
    for secret in c.secrets:
        yield Gap(
            TO_DO, ("container", "secrets", secret.name), "Podman keeps it as a secret of its own", _create(secret)
        )
    for secret in _secrets_in_command(plan):
        hint = f"a line {secret.name}=VALUE in /etc/gb300serve/{plan.lane}.env, readable by root alone"
        yield Gap(TO_DO, ("container", "secrets", secret.name), "the engine's command needs it from systemd", hint)
    if ";" in plan.command:
        yield lost("command", "Podman's generator writes the word `;` bare, and systemd ends the command there")


def _create(secret: Secret) -> str:
    """The file's last line feed is no part of the value."""
    value = f"$(cat {client_file(secret.file)})" if secret.file else f"${secret.env}"
    return f'printf %s "{value}" | podman secret create {secret.name} -'
