"""A launch: the plan with what the moment adds (values of secrets, expected times), and what follows from both."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gb300serve.autotune.expect import Expectation
from gb300serve.boot.receipts import ExpectedLine
from gb300serve.lifecycle.commands import command
from gb300serve.lifecycle.ports import LABEL_LANE, LABEL_PLAN, LABEL_RELEASE, Container
from gb300serve.lifecycle.words import values
from gb300serve.plan.document import digest
from gb300serve.plan.model import Plan
from gb300serve.plan.ports import split_port
from gb300serve.plan.words import SECRET
from gb300serve.probe.endpoint import ServerEndpoint
from gb300serve.probe.engine import ENGINE_PROBES

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
        engine = ENGINE_PROBES[self.plan.engine]
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
