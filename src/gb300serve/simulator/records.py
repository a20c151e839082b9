"""The files of a simulated container: its record, its state, its log and its lock."""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gb300serve.core.files import PRIVATE, write_atomically
from gb300serve.core.ports import Clock
from gb300serve.fit.checkpoint import checkpoint_at_path, known_checkpoints
from gb300serve.lifecycle.backend import Container, Image, LogLine, wanted_options
from gb300serve.lifecycle.receipts import patches
from gb300serve.plan.model import SECRET, Plan
from gb300serve.simulator.engine.registry import ENGINES
from gb300serve.simulator.engine.script import FAULTS
from gb300serve.simulator.engine.settings import CACHE, ENGINE, LISTEN, MEMORY, MODEL, MOUNTS, VERSION

ENTRYPOINT = ("vllm", "serve")
# The exit code is unknown: the machine went down, or the shim was killed together with its engine.
LOST = 255


@dataclass(frozen=True, slots=True)
class State:
    """The last start of a container, as its shim recorded it. `locked`: the shim or its engine lives."""

    locked: bool
    start: int = 0
    pid: int | None = None
    speed: float = 1.0
    started_at: float | None = None
    finished_at: float | None = None
    exit_code: int | None = None
    oom_killed: bool = False
    fault: str | None = None
    last_seen: float | None = None
    """When its log was last written: the end of a container whose end was not recorded."""

    @property
    def running(self) -> bool:
        return self.locked and self.exit_code is None

    @property
    def ever_started(self) -> bool:
        return self.start > 0 or self.locked


def parse_state(content: Mapping[str, Any] | None, *, locked: bool, last_seen: float | None) -> State:
    """From the content of state.json, which is absent before the first start."""
    known = content or {}
    names = ("start", "pid", "speed", "started_at", "finished_at", "exit_code", "oom_killed", "fault")
    return State(locked=locked, last_seen=last_seen, **{name: known[name] for name in names if name in known})


def describe_image(reference: str) -> Image:
    """The simulated image: its id is derived from the reference, its digest is the pinned one."""
    name, _, digest = reference.partition("@")
    repository = name.rpartition(":")[0] if ":" in name.rpartition("/")[2] else name
    digests = (f"{repository}@{digest}",) if digest else ()
    identity = "sha256:" + hashlib.sha256(reference.encode()).hexdigest()
    return Image(id=identity, digests=digests, architecture="arm64", entrypoint=ENTRYPOINT)


def simulation_variables(
    plan: Plan, cache: str, default_version: str, memory: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """The variables that the simulated engine reads, besides the rehearsal's; `memory` is the recipe's section."""
    known = checkpoint_at_path(plan.model_path) if plan.model_path else None
    targets = [mount.target for mount in plan.container.mounts]
    published = plan.container.network != "host" and bool(plan.container.ports)
    return {
        ENGINE: plan.engine,
        VERSION: plan.engine_version or default_version,
        MODEL: known.repo if known else "",
        CACHE: cache,
        # A plan without mounts keeps its model in the image.
        **({MOUNTS: json.dumps(targets)} if targets else {}),
        **({MEMORY: json.dumps(memory)} if memory else {}),
        **({LISTEN: str(plan.port)} if published else {}),
    }


def build_record(
    plan: Plan, labels: Mapping[str, str], secrets: Mapping[str, str], image_id: str, simulation: Mapping[str, str]
) -> dict[str, Any]:
    """container.json without id and time. `secrets` are the stand-ins of a rehearsal."""
    options = plan.container
    host_network = options.network == "host"
    return {
        "name": options.name,
        "image": plan.image,
        "image_id": image_id,
        "labels": {**options.labels, **labels},
        "command": [SECRET.sub(lambda match: secrets.get(match[1], match[0]), argument) for argument in plan.command],
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
        "simulation": dict(simulation),
    }


def _ending(state: State) -> dict[str, Any]:
    if state.running or not state.ever_started:
        return {}
    if state.exit_code is None:
        return {"exit_code": LOST, "finished_at": state.last_seen, "error": "its end was not recorded"}
    return {"exit_code": state.exit_code, "finished_at": state.finished_at, "oom_killed": state.oom_killed}


def describe_container(record: Mapping[str, Any], state: State) -> Container:
    """The container as the backend reports it."""
    same = ("id", "name", "image", "image_id", "labels", "created_at", "restart_policy", "host_network", "gpus", "env")
    return Container(
        **{name: record[name] for name in (*same, "stop_timeout")},
        state="running" if state.running else "exited" if state.ever_started else "created",
        command=tuple(record["command"]),
        started_at=state.started_at,
        published=tuple(record["published"]),
        options=record.get("options"),
        **_ending(state),
    )


# Virtual seconds between two reads of the log, bounded in real seconds: on a fast clock longer pauses would count as
# silence, on a slow one shorter pauses only cost time.
_POLL, _MIN_POLL, _MAX_POLL = 10.0, 0.05, 0.2
# Checking whether a container has ended costs 0.3 ms, fifty times as much as reading its log.
_END_CHECK_SECONDS = 0.1


def _line(record: str) -> LogLine:
    content = json.loads(record)
    return LogLine(content["text"], float(content["at"]), content["stream"])


def read_log(path: Path) -> Iterator[LogLine]:
    """All complete records; none if there is no log."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for record in file:
            if record.endswith(b"\n"):
                yield _line(record.decode())


def poll_interval(speed: float) -> float:
    """Real seconds between two reads of the log, at `speed` virtual seconds per real second."""
    return min(max(_POLL / speed, _MIN_POLL), _MAX_POLL)


def follow_log(
    path: Path, has_ended: Callable[[], bool], clock: Clock, every: float, poll: float = _MIN_POLL
) -> Iterator[LogLine | None]:
    """Each record once, as it is written; None after every `every` seconds of silence. Ends when the container has.

    `poll`: seconds between two reads of the file.
    """
    while not path.exists():
        if has_ended():
            return
        clock.sleep(min(every, poll))
    with path.open("rb") as file:
        rest, last_record, last_check = b"", clock.now(), clock.now() - _END_CHECK_SECONDS
        while True:
            data, is_last = file.read(), False
            if not data and clock.now() - last_check >= _END_CHECK_SECONDS:
                # Read again: records may have been written between the read and the end.
                is_last, last_check = has_ended(), clock.now()
                data = file.read()
            whole, _, rest = (rest + data).rpartition(b"\n")
            records = whole.decode().split("\n") if whole else ()
            last_record = clock.now() if records else last_record
            yield from map(_line, records)
            if is_last:
                return
            if not records:
                if clock.now() - last_record >= every:
                    last_record = clock.now()
                    yield None
                else:
                    clock.sleep(min(every, poll))


CONTAINER, STATE, LOG, LOCK = "container.json", "state.json", "log.jsonl", "lock"


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a file; None if the file is missing or incomplete."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write the file atomically, readable by its owner only, because it contains secrets."""
    write_atomically(path, json.dumps(content, ensure_ascii=False).encode("utf-8"), PRIVATE)


def is_locked(path: Path) -> bool:
    """Whether a process holds the exclusive lock."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file, after waiting for its holder; a process that dies releases it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def missing_requirement(name: str, plan: Plan) -> str | None:
    """What the launch lacks for the fault to show, as a sentence; None if it lacks nothing."""
    fault, faults = FAULTS[name], ENGINES[plan.engine].faults
    if name not in faults:
        return f"its engine {plan.engine} rehearses only {', '.join(faults)}"
    if fault.patched and not any(patches(plan)):
        return "the recipe pins no file over the image"
    if fault.needs_hook and not _has_hook(plan):
        return "the launch installs no hook"
    options = (f"--{key.replace('_', '-')}" for key in fault.drops)
    return next((f"the command has no {option}" for option in options if option not in plan.command), None)


def _has_hook(plan: Plan) -> bool:
    variants = (patch for checkpoint in known_checkpoints() for patch in checkpoint.variants.values())
    return any(patch.env in plan.container.env for patch in variants)
