"""A launch: the plan with what the moment adds (values of secrets, expected times), and what follows from both."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from gb300serve.autotune.sets import Expectation
from gb300serve.boot.receipts import ExpectedLine
from gb300serve.engines.registry import engine as engine_named
from gb300serve.journal.journal import stamp
from gb300serve.lifecycle.backend import LABEL_LANE, LABEL_PLAN, LABEL_RELEASE, Container
from gb300serve.plan.model import SECRET, Plan, digest, secret_word, split_port
from gb300serve.probe.endpoint import ServerEndpoint


def values(words: tuple[str, ...], flag: str) -> tuple[str, ...]:
    """The words that follow a flag up to the next one, or its `--flag=value`; of every time that it is said."""
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


def pinned_words(pin: str | None, plan: Plan) -> tuple[str, ...] | None:
    """The engine's words of the pinned command of a release, secrets as the plan has them; None where there is none."""
    try:
        words = shlex.split((pin or "").replace(" \\\n", " "))  # shlex takes a continuation for a line feed
    except ValueError:
        return None
    repository = plan.image.partition("@")[0].rpartition(":")[0] or plan.image
    image = next((at for at, word in enumerate(words) if word.startswith(repository)), None)
    if image is None:
        return None
    names = {f"${{{secret.name}}}": secret_word(secret.name) for secret in plan.container.secrets}
    return tuple(_with(names, word) for word in words[image + 1 :])


def _with(names: dict[str, str], word: str) -> str:
    for variable, secret in names.items():
        word = word.replace(variable, secret)
    return word


def command(*words: str, on: str, found_by: tuple[str, ...], options: tuple[str, ...] = ()) -> str:
    """`found_by`: the options that led to the site, the Station and the recipes; `options` follow them."""
    place = ("--on", "sim") if on == "sim" else ()
    return shlex.join(("gb300serve", *words, *place, *found_by, *options))


CHANGED = "+set"
"""What marks a release that `--set` changed."""

_CHANGEABLE = frozenset(("up", "doctor", "fit"))
"""Verbs that are told `--set` again; the others find the container that it was launched as, or the recorded set."""

_NOWHERE = frozenset(("fit",))
"""Verbs that look at no machine, and take no `--on`."""


@dataclass(frozen=True, slots=True)
class Launch:
    """`expected` is seconds by phase name; `secrets` are values by name and never leave it."""

    plan: Plan
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    expected: Mapping[str, float] = field(default_factory=dict)
    address: str = "127.0.0.1"
    """Where the client reaches the lane's port (the site's `address`)."""
    on: Literal["docker", "sim"] = "docker"
    overrides: tuple[str, ...] = ()
    """What `--set` said, `path=value`, so that commands in messages mean the same launch."""

    given: str = ""
    """The REF as the user typed it, for the same reason: a file is not found as lane/release."""

    found_by: tuple[str, ...] = ()
    """The options that led to its recipe and its site: without them another command looks elsewhere."""

    receipts: tuple[ExpectedLine, ...] = ()
    """What the log of a good boot shows, from the recipe."""

    tuning: Expectation = field(default_factory=Expectation)
    """The set of the tuning cache that the release loads, and what missing it costs."""

    pinned: tuple[str, ...] | None = None
    """The engine's words in the pinned command; None where the release is not pinned."""

    papers: Mapping[str, str] = field(default_factory=dict)
    """What it was compiled from, as texts by file name: kept with its run."""

    stack_dump: bool = False
    """Take a stack dump of an engine that is stuck."""

    def command(self, verb: str, *words: str) -> str:
        """A command of ours about this launch, to be pasted into a shell; `verb` may be two words (`cache seed`)."""
        first, *_ = spoken = verb.split()
        overrides = tuple(word for each in self.overrides for word in ("--set", each)) if first in _CHANGEABLE else ()
        on = "docker" if first in _NOWHERE else self.on
        return command(*spoken, self.ref, on=on, found_by=self.found_by, options=(*overrides, *words))

    def beside(self, *words: str) -> str:
        """A command of ours about something else in the same place."""
        return command(*words, on=self.on, found_by=self.found_by)

    @property
    def name(self) -> str:
        return self.plan.container.name

    @property
    def digest(self) -> str:
        """The plan's: containers carry it as a label, so that the same plan is known again."""
        return digest(self.plan)

    @property
    def release(self) -> str:
        """As labelled: `v14`, or `v14+set` when `--set` changed it."""
        return self.plan.recipe.rpartition("/")[2]

    @property
    def ref(self) -> str:
        """What the user types to mean it; without the mark of `--set`."""
        return self.given or f"{self.plan.lane}/{self.plan.release}".removesuffix(CHANGED)

    @property
    def labels(self) -> dict[str, str]:
        """The only difference between our container and the one that the printed command creates."""
        return {LABEL_LANE: self.plan.lane, LABEL_RELEASE: self.release, LABEL_PLAN: self.digest}

    @property
    def endpoint(self) -> ServerEndpoint:
        engine = engine_named(self.plan.engine).probe
        url = f"http://{_bracketed(self.address)}:{self.plan.port}"
        return ServerEndpoint(url, self._api_key(engine.key_variable), engine)

    def _api_key(self, variable: str | None) -> str | None:
        """The key that guards /v1: the first word of `--api-key`, else the engine's variable."""
        given = values(self.plan.command, "--api-key")
        if given:
            return SECRET.sub(lambda match: self.secrets.get(match[1], match[0]), given[0])
        if variable is None:
            return None
        return self.secrets.get(variable) or self.plan.container.env.get(variable)


def host_ports(plan: Plan) -> tuple[int, ...]:
    """The ports of the host that the container takes: the engine's on the host's network, else the published ones."""
    if plan.container.network == "host":
        return () if plan.port is None else (plan.port,)
    return tuple(host for host, _ in map(split_port, plan.container.ports) if host is not None)


def other_secrets(launch: Launch, container: Container) -> tuple[str, ...]:
    """Names of the launch's secrets of which the container holds another value than the one that was read now."""
    held = container.env
    return tuple(name for name, value in launch.secrets.items() if held.get(name, value) != value)


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address and not address.startswith("[") else address


# Docker's own rule for what may stand in a name; a release such as `v14+set` has more.
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_.-]")
_FAILED = re.compile(r"-failed-\d{8}T\d{6}Z$")


def moment(at: float | None) -> str:
    """Seconds since 1970 as UTC, `2026-11-29 19:50:03Z`: for people."""
    return "an unknown time" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def kept_name(name: str, container: Container, at: float) -> str:
    """What a replaced container is called: `NAME-kept-v13-20261129T195003Z`."""
    release = in_name(container.labels.get(LABEL_RELEASE, ""))
    return "-".join(part for part in (name, "kept", release, stamp(at)) if part)


def failed_name(name: str, at: float) -> str:
    """What a container whose boot failed is called."""
    return f"{name}-failed-{stamp(at)}"


def in_name(text: str) -> str:
    """The text with `-` for what may not stand in a name."""
    return _FORBIDDEN.sub("-", text)


def is_failed(container: Container) -> bool:
    """Set aside after its boot failed: never started again by itself."""
    return _FAILED.search(container.name) is not None


def title(container: Container) -> str:
    """`deepseek-v4.1-flash/v13 (container dsv41-vllm)`, or `container NAME (image IMAGE)` for one that is not ours."""
    if not container.ours:
        return f"container {container.name} (image {container.image})"
    return f"{release_of(container)} (container {container.name})"


def release_of(container: Container) -> str:
    """`lane/release` of a container of ours, as it was labelled."""
    return f"{container.labels.get(LABEL_LANE, '?')}/{container.labels.get(LABEL_RELEASE, '?')}"


def ref_of(container: Container) -> str:
    """What the user types to mean it: its release without the mark of `--set`."""
    return release_of(container).removesuffix(CHANGED)


def condition(container: Container) -> str:
    """Running since when, or ended when and how."""
    if container.state == "created":
        return f"created {moment(container.created_at)} and never started"
    if container.state in {"running", "paused", "restarting"}:
        return f"{container.state} since {moment(container.started_at)}"
    memory = ", out of memory" if container.oom_killed else ""
    return f"stopped {moment(container.finished_at)} with exit code {container.exit_code}{memory}"
