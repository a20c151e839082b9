"""A plan as the simulated Station keeps it, and what it has kept as a container. Pure."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gb300serve.fit.catalog import checkpoint_at
from gb300serve.lifecycle.options import wanted_options
from gb300serve.lifecycle.ports import Container, Image
from gb300serve.lifecycle.receipts_patches import patches
from gb300serve.plan.model import Plan
from gb300serve.plan.words import SECRET
from gb300serve.simulator.engine_settings import CACHE, DEFAULT_VERSION, ENGINE, LISTEN, MODEL, MOUNTS, VERSION

ENTRYPOINT = ("vllm", "serve")
# The newest of those that have an option table.
DEFAULT_VERSIONS = {"vllm": DEFAULT_VERSION, "sglang": "0.5.23"}
# Nobody was there to see how it ended: the machine went down, or the shim was killed with its engine.
LOST = 255


@dataclass(frozen=True, slots=True)
class State:
    """The last start of a container, as its shim wrote it down. `locked`: the shim or its engine lives."""

    locked: bool
    start: int = 0
    pid: int | None = None
    speed: float = 1.0
    started_at: float | None = None
    finished_at: float | None = None
    exit_code: int | None = None
    oom_killed: bool = False
    fault: str | None = None
    """What this start rehearses."""
    last_seen: float | None = None
    """When its log was last written, for an end that nobody saw."""

    @property
    def running(self) -> bool:
        return self.locked and self.exit_code is None

    @property
    def ever_started(self) -> bool:
        return self.start > 0 or self.locked


def state_of(content: Mapping[str, Any] | None, *, locked: bool, last_seen: float | None) -> State:
    """From state.json, absent before the first start."""
    known = content or {}
    names = ("start", "pid", "speed", "started_at", "finished_at", "exit_code", "oom_killed", "fault")
    return State(locked=locked, last_seen=last_seen, **{name: known[name] for name in names if name in known})


def image_of(reference: str) -> Image:
    """The image that a reference means here: its id follows from the reference, its digest from the pin."""
    named, _, digest = reference.partition("@")
    repository = named.rpartition(":")[0] if ":" in named.rpartition("/")[2] else named
    digests = (f"{repository}@{digest}",) if digest else ()
    identity = "sha256:" + hashlib.sha256(reference.encode()).hexdigest()
    return Image(id=identity, digests=digests, architecture="arm64", entrypoint=ENTRYPOINT)


def _with_secrets(word: str, secrets: Mapping[str, str]) -> str:
    return SECRET.sub(lambda match: secrets.get(match[1], match[0]), word)


def _simulation(plan: Plan, cache: str) -> dict[str, str]:
    """What the stand-in must know and the plan says."""
    known = checkpoint_at(plan.model_path) if plan.model_path else None
    targets = [mount.target for mount in plan.container.mounts]
    published = plan.container.network != "host" and bool(plan.container.ports)
    return {
        ENGINE: plan.engine,
        VERSION: plan.engine_version or DEFAULT_VERSIONS[plan.engine],
        MODEL: known.repo if known else "",
        CACHE: cache,
        # Without any mount the model is in the image, as far as anybody can tell.
        **({MOUNTS: json.dumps(targets)} if targets else {}),
        **({LISTEN: str(plan.port)} if published else {}),
    }


def record_of(
    plan: Plan, labels: Mapping[str, str], secrets: Mapping[str, str], image_id: str, cache: str
) -> dict[str, Any]:
    """container.json without the id and the time. Secrets are in it, as they are in Docker's own files."""
    options = plan.container
    host_network = options.network == "host"
    return {
        "name": options.name,
        "image": plan.image,
        "image_id": image_id,
        "labels": {**options.labels, **labels},
        "command": [_with_secrets(word, secrets) for word in plan.command],
        "env": {
            **options.env,
            **{secret.name: secrets[secret.name] for secret in options.secrets if secret.name in secrets},
        },
        "restart_policy": "no",
        "host_network": host_network,
        "gpus": options.gpus,
        "published": [plan.port] if options.ports and not host_network else [],
        "stop_timeout": options.stop_timeout,
        "options": wanted_options(options),
        "mounts": {mount.target: mount.source for mount in options.mounts},
        "pinned": dict(patches(plan)),
        "simulation": _simulation(plan, cache),
    }


def _ending(state: State) -> dict[str, Any]:
    if state.running or not state.ever_started:
        return {}
    if state.exit_code is None:
        return {"exit_code": LOST, "finished_at": state.last_seen, "error": "nobody saw how it ended"}
    return {"exit_code": state.exit_code, "finished_at": state.finished_at, "oom_killed": state.oom_killed}


def container_of(record: Mapping[str, Any], state: State) -> Container:
    """As the tool sees it."""
    return Container(
        id=record["id"],
        name=record["name"],
        image=record["image"],
        image_id=record["image_id"],
        state="running" if state.running else "exited" if state.ever_started else "created",
        labels=record["labels"],
        command=tuple(record["command"]),
        created_at=record["created_at"],
        started_at=state.started_at,
        restart_policy=record["restart_policy"],
        host_network=record["host_network"],
        gpus=record["gpus"],
        env=record["env"],
        published=tuple(record["published"]),
        stop_timeout=record["stop_timeout"],
        options=record.get("options"),
        **_ending(state),
    )
