"""The Docker Engine as a container backend, over its HTTP API."""

import hashlib
import io
import json
import math
import re
import tarfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Literal, Protocol
from urllib.parse import quote

from gb300serve.adapters.docker import inspect
from gb300serve.adapters.docker.body import create_body, restart_policy, seccomp_files
from gb300serve.adapters.docker.client import (
    DockerImageMissingError,
    DockerRefusedError,
    NameInUseError,
    NoSuchContainerError,
    SeccompProfileError,
)
from gb300serve.adapters.docker.inspect import NANO, nanoseconds
from gb300serve.adapters.docker.logs import EARLY, AttachedBars, Follower, OpenChunks, Start, frames
from gb300serve.core.ports import Clock
from gb300serve.core.values import Missing
from gb300serve.host.collect import RemoteMachine, shared_memory
from gb300serve.host.facts import Machine
from gb300serve.lifecycle.backend import Container, Image, LogLine, Vitals
from gb300serve.plan.model import Plan

Json = dict[str, Any]

LABEL_CHECK = "gb300serve.check"
# A start sets up devices and mounts; on a loaded machine it can take over a minute (measured).
START_TIMEOUT = 300.0
# What the Engine needs, beyond the timeout, to kill a container and remove its resources.
STOP_MARGIN = 60.0
# A long line has several entries of 16 KiB, and one entry can have many states of a bar: request more, keep the last.
ENTRIES_A_LINE = 4
# Until the Engine has registered the end of a container, it refuses updates with this message.
_NOT_UPDATED = "Cannot update container"
UPDATE_TRIES = 25
UPDATE_EVERY = 0.2
# Seconds for which an inspection is reused within one tick of a watch; a request costs 1.2 ms of a core.
GLANCE = 0.25
# The Engine stores its last 256 events and returns them at once.
EVENTS_TIMEOUT = 10.0
# Seconds for a stack dump or a small file.
PATIENCE = 30.0
_PY_SPY = ("py-spy", "dump", "--pid", "1", "--subprocesses")
# Exit codes of a shell whose program is missing.
_NOT_FOUND = frozenset({126, 127})
_LINKS = 5
_NO_SOURCE = re.compile(r"bind source path does not exist: (.*)", re.DOTALL)


class DockerApi(Protocol):
    """The HTTP API without its version prefix. Raises DockerUnreachableError and DockerRefusedError."""

    def get(self, path: str, params: Mapping[str, Any] = ...) -> Any: ...

    def post(self, path: str, params: Mapping[str, Any] = ..., body: Any = ..., timeout: float = ...) -> Any: ...

    def delete(self, path: str, params: Mapping[str, Any] = ...) -> None: ...

    def stream(self, path: str, params: Mapping[str, Any], *, method: str = ..., body: Any = ...) -> OpenChunks: ...


ELSEWHERE = RemoteMachine("the Docker Engine runs on another machine")


class DockerBackend:
    """Implements `lifecycle.backend.ContainerBackend`. `gpu_use` is 0 to 1, None if unknown; `machine` runs the Engine.

    The Engine's log delivers a line after its line feed: a progress bar with carriage returns only arrives at its end.
    """

    def __init__(
        self,
        engine: DockerApi,
        clock: Clock,
        gpu_use: Callable[[], float | None] = lambda: None,
        machine: Machine = ELSEWHERE,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._gpu_use = gpu_use
        self._machine = machine
        self._ahead: float | None = None
        self._seen: tuple[str, float, Json] | None = None

    @property
    def kind(self) -> Literal["docker"]:
        return "docker"

    def check(self) -> None:
        self._engine.get("/containers/json", {"limit": 1})  # not /version, which runs three programs

    def find(self, name: str) -> Container | None:
        try:
            return inspect.container(self._inspect(name))
        except NoSuchContainerError:
            return None

    def containers(self) -> tuple[Container, ...]:
        listed = self._engine.get("/containers/json", {"all": 1})
        names = (item["Id"] for item in listed if LABEL_CHECK not in (item["Labels"] or {}))
        found = (self.find(name) for name in names)
        return tuple(container for container in found if container)  # one may be removed since it was listed

    def image(self, reference: str) -> Image | None:
        inspected = _image(self._engine, reference)
        return inspect.image(inspected) if inspected else None

    def missing_sources(self, plan: Plan) -> tuple[str, ...]:
        """Checked by the Engine, which may be remote: it refuses to create a container if a mount source is missing.

        If none is missing, it creates a container, which is never started and is removed at once.
        """
        self._remove_checks()
        sources = list(dict.fromkeys(mount.source for mount in plan.container.mounts if not mount.is_volume))
        missing: list[str] = []
        try:
            while left := [source for source in sources if source not in missing]:
                source = self._missing_one(plan.image, left)
                if source is None:
                    break
                missing.append(source)
        finally:
            self._remove_checks()
        return tuple(source for source in sources if source in missing)

    def create(self, plan: Plan, labels: Mapping[str, str], secrets: Mapping[str, str]) -> str:
        profiles = {file: _seccomp_profile(file) for file in seccomp_files(plan.container)}
        name = {"name": plan.container.name} if plan.container.name else {}
        return self._create(create_body(plan, labels, secrets, profiles), name)

    def start(self, container: str) -> None:
        self._post(container, "start", timeout=START_TIMEOUT)

    def stop(self, container: str, timeout: float) -> None:
        whole = math.ceil(timeout)  # the API takes seconds
        self._post(container, "stop", {"t": whole}, timeout=whole + STOP_MARGIN)

    def rename(self, container: str, name: str) -> None:
        self._post(container, "rename", {"name": name})

    def remove(self, container: str) -> None:
        """Also removes its anonymous volumes."""
        try:
            self._engine.delete(_path(container), {"v": 1})
        except DockerRefusedError as error:
            raise _of_container(error, container) from error

    def set_restart(self, container: str, policy: str) -> None:
        for left in reversed(range(UPDATE_TRIES)):
            try:
                self._post(container, "update", body={"RestartPolicy": restart_policy(policy)})
            except DockerRefusedError as error:
                if _NOT_UPDATED not in error.said or not left:
                    raise
                self._clock.sleep(UPDATE_EVERY)
            else:
                return

    def elapsed(self, container: str) -> float:
        """By the clock of the Engine's machine, which may be remote."""
        started = nanoseconds(self._glance(container)["State"]["StartedAt"])
        if self._ahead is None:
            self._ahead = nanoseconds(self._engine.get("/info")["SystemTime"]) / NANO - self._clock.now()
        return max(0.0, self._clock.now() + self._ahead - started / NANO) if started else 0.0

    def follow(self, container: str, every: float) -> Iterator[LogLine | None]:
        yield from Follower(self, self._clock, container).follow(every)

    def log(self, container: str, tail: int | None = None) -> Iterator[LogLine]:
        lines = Follower(self, self._clock, container).log(None if tail is None else tail * ENTRIES_A_LINE)
        yield from lines if tail is None else deque(lines, maxlen=tail)

    def vitals(self, container: str) -> Vitals:
        """Without `one-shot`, the Engine would take two samples, one second apart."""
        stats = self._engine.get(f"{_path(container)}/stats", {"stream": 0, "one-shot": 1})
        spent = stats.get("cpu_stats", {}).get("cpu_usage", {}).get("total_usage")
        seconds = None if spent is None else spent / NANO
        return Vitals(seconds, self._gpu_use(), self._glance(container).get("RestartCount", 0))

    def processes(self, container: str) -> frozenset[int]:
        """The same processes as `docker top`."""
        top = self._engine.get(f"{_path(container)}/top", {"ps_args": "-eo pid"})
        return frozenset(int(row[0]) for row in top.get("Processes") or () if row and str(row[0]).isdecimal())

    def shared_memory(self, container: str) -> int | Missing:
        return shared_memory(self._machine, str(self._inspect(container)["Id"]), self.processes(container))

    def bars(self, container: str) -> AttachedBars | None:
        """None if the Engine refuses to attach."""
        try:
            tty = bool(self._inspect(container)["Config"]["Tty"])
            query = {"stream": 1, "stdout": 1, "stderr": 1}
            opened = self._engine.stream(f"{_path(container)}/attach", query, method="POST")
        except DockerRefusedError:
            return None
        return AttachedBars(opened, tty=tty)

    def stack_command(self, container: str) -> str:
        name = str(self._inspect(container)["Name"]).lstrip("/")
        pid = f"$(docker inspect --format '{{{{.State.Pid}}}}' {name})"
        return f"docker exec {name} {' '.join(_PY_SPY)}  (or on the host: sudo py-spy dump --subprocesses --pid {pid})"

    def stacks(self, container: str) -> str | None:
        body = {"AttachStdout": True, "AttachStderr": True, "Cmd": list(_PY_SPY)}
        run = self._engine.post(f"{_path(container)}/exec", {}, body)["Id"]
        try:
            output = self._whole(f"/exec/{run}/start", {}, {"Detach": False, "Tty": False})
        except DockerRefusedError:
            return None
        text = b"".join(payload for _, payload in frames(output)[0]).decode("utf-8", "replace")
        return None if self._engine.get(f"/exec/{run}/json").get("ExitCode") in _NOT_FOUND else text.strip() or None

    def file_sha256(self, container: str, path: str) -> str | None:
        """From the archive API, which sees the container's file system including mounts."""
        file = PurePosixPath(path)
        for _ in range(_LINKS):
            try:
                archive = self._whole(f"{_path(container)}/archive", {"path": str(file)})
            except DockerRefusedError as error:
                if error.status == 404:
                    return None
                raise
            digest, link = _first(archive)
            if link is None:
                return digest
            file = file.parent / link
        return None

    def last_start(self, container: str) -> Start:
        """Implements `logs.LogSource`."""
        inspected = self._inspect(container)
        state = inspected["State"]
        at, ended = nanoseconds(state["StartedAt"]), nanoseconds(state["FinishedAt"])
        running = inspect.runs(state)
        if at and not running:  # FinishedAt belongs to this start (and may precede StartedAt if it was short)
            ended = self._end_before(inspected["Id"], at)
        return Start(at, ended, running=running, tty=inspected["Config"]["Tty"])

    def started_at(self, container: str) -> int:
        """Implements `logs.LogSource`."""
        state = self._inspect(container)["State"]
        return nanoseconds(state["StartedAt"]) if inspect.runs(state) else inspect.NEVER

    def open_log(self, container: str, since: int, *, live: bool, entries: int | None = None) -> OpenChunks:
        """Implements `logs.LogSource`."""
        which = {"stdout": 1, "stderr": 1, "timestamps": 1, "since": _stamp(since)}
        tail = "all" if entries is None else str(entries)
        try:
            return self._engine.stream(f"{_path(container)}/logs", {**which, "follow": int(live), "tail": tail})
        except DockerRefusedError as error:
            raise _of_container(error, container) from error

    def _end_before(self, identity: str, started: int) -> int:
        """The end of the previous start, if it is within EARLY; else 0.

        The Engine sends `die` after it has registered the start, so the end of this start is never included.
        """
        events = json.dumps({"type": ["container"], "container": [identity], "event": ["die"]})
        span = {"since": _stamp(started - EARLY), "until": _stamp(started)}
        with self._engine.stream("/events", {**span, "filters": events}) as chunks:
            events_sent = b"".join(iter(lambda: chunks.next(EVENTS_TIMEOUT) or b"", b""))
        ends: list[int] = [json.loads(line)["timeNano"] for line in events_sent.splitlines()]
        return max((end for end in ends if end < started), default=0)

    def _inspect(self, container: str) -> Json:
        try:
            inspected: Json = self._engine.get(f"{_path(container)}/json")
        except DockerRefusedError as error:
            raise _of_container(error, container) from error
        self._seen = container, self._clock.now(), inspected
        return inspected

    def _glance(self, container: str) -> Json:
        """An inspection of at most GLANCE seconds ago."""
        if self._seen is not None:
            name, at, inspected = self._seen
            if name == container and 0 <= self._clock.now() - at < GLANCE:
                return inspected
        return self._inspect(container)

    def _whole(self, path: str, params: dict[str, str], body: dict[str, bool] | None = None) -> bytes:
        pieces = []
        with self._engine.stream(path, params, method="GET" if body is None else "POST", body=body) as chunks:
            while piece := chunks.next(PATIENCE):  # after a timeout, use what has arrived
                pieces.append(piece)
        return b"".join(pieces)

    def _post(self, container: str, verb: str, params: Json | None = None, **options: Any) -> None:
        try:
            self._engine.post(f"{_path(container)}/{verb}", params or {}, **options)
        except DockerRefusedError as error:
            raise _of_container(error, container) from error

    def _create(self, body: Json, params: Mapping[str, str]) -> str:
        try:
            created: str = self._engine.post("/containers/create", params, body)["Id"]
        except DockerRefusedError as error:
            if error.status == 404:
                raise DockerImageMissingError(body["Image"]) from error
            raise (NameInUseError(error.said) if error.status == 409 else error) from error
        return created

    def _missing_one(self, image: str, sources: list[str]) -> str | None:
        mounts = [
            {"Type": "bind", "Source": source, "Target": f"/{LABEL_CHECK}/{index}", "ReadOnly": True}
            for index, source in enumerate(sources)
        ]
        body = {"Image": image, "Cmd": ["true"], "Labels": {LABEL_CHECK: ""}, "HostConfig": {"Mounts": mounts}}
        try:
            self._create(body, {})
        except DockerRefusedError as error:
            found = _NO_SOURCE.search(error.said)
            if found and found[1] in sources:
                return found[1]
            raise
        return None

    def _remove_checks(self) -> None:
        """Remove check containers, also those of a killed call."""
        query = {"all": 1, "filters": json.dumps({"label": [LABEL_CHECK]})}
        for item in self._engine.get("/containers/json", query):
            try:
                self.remove(item["Id"])
            except NoSuchContainerError:
                continue  # another command removed it


def _first(archive: bytes) -> tuple[str | None, str | None]:
    """The sha256 of the first file of a tar archive, or the target of a link."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        member = tar.next()
        if member is None or member.isdir():
            return None, None
        if member.issym():
            return None, member.linkname
        file = tar.extractfile(member)
        return (hashlib.sha256(file.read()).hexdigest() if file else None), None


def _stamp(nanos: int) -> str:
    return f"{nanos // NANO}.{nanos % NANO:09d}"


def _path(container: str) -> str:
    return f"/containers/{quote(container, safe='')}"


def _of_container(error: DockerRefusedError, container: str) -> DockerRefusedError | NoSuchContainerError:
    # During `docker rm --force`, its log is refused with a conflict: "… which is dead or marked for removal".
    if error.status == 404 or (error.status == 409 and "marked for removal" in error.said):
        return NoSuchContainerError(container)
    return NameInUseError(error.said) if error.status == 409 and "already in use" in error.said else error


def _seccomp_profile(file: str) -> str:
    """The content of the file, without spaces, as the client sends it."""
    try:
        return json.dumps(json.loads(Path(file).read_bytes()), separators=(",", ":"), ensure_ascii=False)
    except (OSError, ValueError) as error:
        raise SeccompProfileError(file, str(error)) from error


def _image(engine: DockerApi, reference: str) -> Json | None:
    try:
        inspected: Json = engine.get(f"/images/{quote(reference, safe='/:@')}/json")
    except DockerRefusedError as error:
        if error.status == 404:
            return None
        raise
    return inspected


def raw_inspect(engine: DockerApi, name: str) -> tuple[Json, Json | None]:
    """The container, and its image if it still exists. Raises NoSuchContainerError and other BackendErrors."""
    try:
        container: Json = engine.get(f"{_path(name)}/json")
    except DockerRefusedError as error:
        raise (NoSuchContainerError(name) if error.status == 404 else error) from error
    return container, _image(engine, container["Image"])
