"""A launch: the plan with secret values and expected times; names and descriptions of its containers."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from gb300serve.autotune.sets import ExpectedSet
from gb300serve.boot.receipts import ExpectedLine
from gb300serve.engines.registry import engine as engine_named
from gb300serve.journal.journal import format_stamp
from gb300serve.lifecycle.backend import LABEL_LANE, LABEL_PLAN, LABEL_RELEASE, Container
from gb300serve.plan.model import SECRET, Plan, digest, secret_placeholder, split_port
from gb300serve.probe.endpoint import ServerEndpoint


def option_values(words: tuple[str, ...], flag: str) -> tuple[str, ...]:
    """The arguments of every occurrence of a flag: up to the next flag, or its `--flag=value`."""
    found: list[str] = []
    inside = False
    for word in words:
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            inside = name == flag
            found += [value] if inside and equals else []
        elif inside:
            found.append(word)
    return tuple(found)


_VARIABLE = re.compile(r"\$\{[^{}]*\}")


def pinned_arguments(pin: str | None, plan: Plan) -> tuple[str, ...] | None:
    """The engine's arguments in the pinned command of a release, with the plan's secrets; None without one."""
    try:
        words = shlex.split((pin or "").replace(" \\\n", " "))  # shlex takes a continuation for a line feed
    except ValueError:
        return None
    repository = plan.image.partition("@")[0].rpartition(":")[0] or plan.image
    image = next((at for at, word in enumerate(words) if word.startswith(repository)), None)
    if image is None:
        return None
    names = {f"${{{secret.name}}}": secret_placeholder(secret.name) for secret in plan.container.secrets}
    return tuple(_VARIABLE.sub(lambda match: names.get(match[0], match[0]), word) for word in words[image + 1 :])


CHANGED = "+set"
"""Marks a release that `--set` changed."""


@dataclass(frozen=True, slots=True)
class Launch:
    """`expected` is seconds by phase name; `secrets` are values by name and never leave it."""

    plan: Plan
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    expected: Mapping[str, float] = field(default_factory=dict)
    address: str = "127.0.0.1"
    """The address of the lane's port for clients (the site's `address`)."""
    on: Literal["docker", "sim"] = "docker"
    overrides: tuple[str, ...] = ()
    """The `--set` changes, `path=value`."""
    receipts: tuple[ExpectedLine, ...] = ()
    """Receipts of a good boot, from the recipe."""
    tuning: ExpectedSet = field(default_factory=ExpectedSet)
    """The tuning set that the release loads, and the cost of a miss."""
    pinned: tuple[str, ...] | None = None
    """The engine's arguments in the pinned command; None if the release is not pinned."""
    stack_dump: bool = False
    """Whether to print the stack of a stuck engine."""
    timeout: float | None = None
    """Seconds after which an unfinished boot counts as failed, however alive it is; None: no limit."""

    @property
    def name(self) -> str:
        return self.plan.container.name

    @property
    def digest(self) -> str:
        """The digest of the plan; a label of its containers."""
        return digest(self.plan)

    @property
    def release(self) -> str:
        """As labelled: `v14`, or `v14+set` when `--set` changed it."""
        return self.plan.recipe.rpartition("/")[2]

    @property
    def ref(self) -> str:
        """`lane/release`, without the mark of `--set`."""
        return f"{self.plan.lane}/{self.plan.release}".removesuffix(CHANGED)

    @property
    def labels(self) -> dict[str, str]:
        """The only difference between our container and one of the printed command."""
        return {LABEL_LANE: self.plan.lane, LABEL_RELEASE: self.release, LABEL_PLAN: self.digest}

    @property
    def endpoint(self) -> ServerEndpoint:
        engine = engine_named(self.plan.engine).probe
        host = f"[{self.address}]" if ":" in self.address and not self.address.startswith("[") else self.address
        return ServerEndpoint(f"http://{host}:{self.plan.port}", self._api_key(engine.key_variable), engine)

    def _api_key(self, variable: str | None) -> str | None:
        """The API key: the first argument of `--api-key`, else the engine's variable."""
        given = option_values(self.plan.command, "--api-key")
        if given:
            return SECRET.sub(lambda match: self.secrets.get(match[1], match[0]), given[0])
        return None if variable is None else self.secrets.get(variable) or self.plan.container.env.get(variable)


def host_ports(plan: Plan) -> tuple[int, ...]:
    """The host ports that the container uses: the engine's on the host's network, else the published ones."""
    if plan.container.network == "host":
        return () if plan.port is None else (plan.port,)
    return tuple(host for host, _ in map(split_port, plan.container.ports) if host is not None)


def changed_secrets(launch: Launch, container: Container) -> tuple[str, ...]:
    """Names of secrets whose value in the container differs from the current one."""
    held = container.env
    return tuple(name for name, value in launch.secrets.items() if held.get(name, value) != value)


# Characters that Docker forbids in a container name; a release such as `v14+set` has some.
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_.-]")
_FAILED = re.compile(r"-failed-\d{8}T\d{6}Z$")


def display_time(at: float | None) -> str:
    """Seconds since 1970 as UTC, `2026-11-29 19:50:03Z`."""
    return "an unknown time" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def kept_name(name: str, container: Container, at: float) -> str:
    """The name of a replaced container: `NAME-kept-v13-20261129T195003Z`."""
    release = safe_in_name(container.labels.get(LABEL_RELEASE, ""))
    return "-".join(part for part in (name, "kept", release, format_stamp(at)) if part)


def failed_name(name: str, at: float) -> str:
    """The name of a container whose boot failed."""
    return f"{name}-failed-{format_stamp(at)}"


def safe_in_name(text: str) -> str:
    """The text with `-` for characters that a name may not contain."""
    return _FORBIDDEN.sub("-", text)


def is_failed(container: Container) -> bool:
    """Whether it was kept after a failed boot; such a container is never started again automatically."""
    return _FAILED.search(container.name) is not None


def describe_container(container: Container) -> str:
    """`deepseek-v4.1-flash/v13 (container dsv41-vllm)`, or `container NAME (image IMAGE)` for a foreign one."""
    if not container.ours:
        return f"container {container.name} (image {container.image})"
    return f"{release_of(container)} (container {container.name})"


def release_of(container: Container) -> str:
    """`lane/release` from the labels of our container."""
    return f"{container.labels.get(LABEL_LANE, '?')}/{container.labels.get(LABEL_RELEASE, '?')}"


def ref_of(container: Container) -> str:
    """The REF of our container: its release without the mark of `--set`."""
    return release_of(container).removesuffix(CHANGED)


def describe_state(container: Container) -> str:
    """Since when it runs, or when and how it ended."""
    if container.state == "created":
        return f"created {display_time(container.created_at)} and never started"
    if container.state in {"running", "paused", "restarting"}:
        return f"{container.state} since {display_time(container.started_at)}"
    memory = ", out of memory" if container.oom_killed else ""
    return f"stopped {display_time(container.finished_at)} with exit code {container.exit_code}{memory}"
