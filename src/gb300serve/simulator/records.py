"""Files of a simulated container, read and written so that a kill at any moment leaves a whole one."""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gb300serve.core.ports import Clock
from gb300serve.engines.tables import versions
from gb300serve.fit.checkpoint import checkpoint_at
from gb300serve.lifecycle.backend import Container, Image, LogLine, wanted_options
from gb300serve.lifecycle.receipts import patches
from gb300serve.plan.model import SECRET, Plan
from gb300serve.simulator.engine.settings import CACHE, DEFAULT_VERSION, ENGINE, LISTEN, MODEL, MOUNTS, VERSION

ENTRYPOINT = ("vllm", "serve")
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
        VERSION: plan.engine_version or (DEFAULT_VERSION if plan.engine == "vllm" else versions(plan.engine)[-1]),
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


# How often the log is looked at, in virtual seconds and within these bounds of real ones: on a fast clock a pause would
# pass for silence, on a real one each look costs more than the lines that it finds.
_POLL, _SOONEST, _LATEST = 10.0, 0.05, 0.2
# Whether a container has ended costs 0.3 ms to find out, fifty times as much as a look at its log.
_ASK = 0.1


def _line(record: str) -> LogLine:
    content = json.loads(record)
    return LogLine(content["text"], float(content["at"]), content["stream"])


def read(path: Path) -> Iterator[LogLine]:
    """All whole records; none where there is no log."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for record in file:
            if record.endswith(b"\n"):
                yield _line(record.decode())


def poll(speed: float) -> float:
    """Real seconds between two looks, at `speed` virtual ones a second."""
    return min(max(_POLL / speed, _SOONEST), _LATEST)


def follow(
    path: Path, ended: Callable[[], bool], clock: Clock, every: float, look: float = _SOONEST
) -> Iterator[LogLine | None]:
    """Each record once, live; None after every `every` seconds of silence; ends when `ended` and all is read.

    `look`: seconds between two looks at the file.
    """
    while not path.exists():
        if ended():
            return
        clock.sleep(min(every, look))
    with path.open("rb") as file:
        rest, heard, asked = b"", clock.now(), clock.now() - _ASK
        while True:
            data, last = file.read(), False
            if not data and clock.now() - asked >= _ASK:
                # What was written before the end is read after it is known.
                last, asked = ended(), clock.now()
                data = file.read()
            whole, _, rest = (rest + data).rpartition(b"\n")
            records = whole.decode().split("\n") if whole else ()
            heard = clock.now() if records else heard
            yield from map(_line, records)
            if last:
                return
            if not records:
                if clock.now() - heard >= every:
                    heard = clock.now()
                    yield None
                else:
                    clock.sleep(min(every, look))


CONTAINER, STATE, LOG, LOCK = "container.json", "state.json", "log.jsonl", "lock"


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a file; None when there is no file, or no whole one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Beside the file first, then in its place; readable by the user alone, as secrets are in it."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(content, file, ensure_ascii=False)
    fresh.replace(path)


def is_locked(path: Path) -> bool:
    """Does anybody hold the exclusive lock?"""
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
def exclusively(path: Path) -> Iterator[None]:
    """Hold the lock of a file, waiting for whoever has it; a process that dies lets go."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
