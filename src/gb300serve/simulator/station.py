"""The simulated Station: a container backend whose containers are directories that run the simulated engine.

It has every image and every path that a plan names, unless the rehearsal excludes them, and the kernel-tuning caches of
the measured releases. Restart policies are recorded and shown but have no effect.
"""

import hashlib
import shutil
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal, cast

from gb300serve.core.errors import Action, BackendError, CommandLineError
from gb300serve.core.ports import Clock, Processes
from gb300serve.core.values import Missing
from gb300serve.fit.checkpoint import GIB
from gb300serve.lifecycle.backend import LABEL_PLAN, Container, Image, LogLine, Vitals
from gb300serve.plan.model import Plan, digest
from gb300serve.simulator import records
from gb300serve.simulator.engine.registry import ENGINES, parse_settings
from gb300serve.simulator.engine.script import FAULTS, Fault
from gb300serve.simulator.engine.settings import DEFAULT_SPEED, FAULT, SPEED, estimate_memory, read_environment
from gb300serve.simulator.host import seed_caches

# Real seconds; a shim and its engine start in 0.3 s on an idle machine.
_START_PATIENCE = 60.0
_KILL_PATIENCE = 10.0
_POLL = 0.01
# As in Docker, the beginning of an id names a container; Docker shows twelve digits.
_SHORT_ID = 12
_PACKAGE = Path(__file__).parents[2]


def _every_path(_path: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """How containers are run, and what the Station lacks. `speed` is virtual seconds per real second."""

    speed: float = DEFAULT_SPEED
    fault: str | None = None
    afflicts: Plan | None = None
    """The plan that the fault applies to: a lane that its launch restores boots without the fault."""
    lacks_images: frozenset[str] = frozenset()
    has_path: Callable[[str], bool] = _every_path
    image_ids: Mapping[str, str] = field(default_factory=dict)
    """Pinned ids by reference; other ids are derived from the reference."""
    memory: Mapping[str, Any] | None = None
    """The `memory` section of the recipe, which the boot obeys."""


# Cores that an engine keeps busy while it boots; one that hangs polls a queue.
_CORES = 1.0
_HEARTBEAT = "No available shared memory broadcast block"
_STACK = """\
Process 364: EngineCore
Python v3.12.3 (/usr/bin/python3.12)

Thread 364 (idle): "MainThread"
    read (safetensors/torch.py:338)
    safetensors_weights_iterator (vllm/model_executor/model_loader/weight_utils.py:812)
    load_weights (vllm/model_executor/model_loader/default_loader.py:492)
    load_model (vllm/v1/worker/gpu_worker.py:541)
    _init_executor (vllm/v1/executor/uniproc_executor.py:58)
    run_engine_core (vllm/v1/engine/core.py:1371)"""


class SimulatedStation:
    """`lifecycle.backend.ContainerBackend`. Several processes may use one directory at once."""

    kind: Literal["sim"] = "sim"

    def __init__(
        self, directory: Path, processes: Processes, clock: Clock, python: str, rehearsal: Rehearsal = Rehearsal()
    ) -> None:
        self._directory = directory
        self._processes = processes
        self._clock = clock
        self._python = python
        self._rehearsal = rehearsal

    @property
    def _containers(self) -> Path:
        return self._directory / "containers"

    def check(self) -> None:
        """Raises CommandLineError for a fault that does not exist, or that could not show in this launch."""
        fault, plan = self._rehearsal.fault, self._rehearsal.afflicts
        if fault is None:
            return
        if fault not in FAULTS:
            raise CommandLineError(f"{fault!r} is not a simulated fault", hint=f"expected one of {', '.join(FAULTS)}")
        if plan is not None and (reason := records.missing_requirement(fault, plan)) is not None:
            hint = "choose another fault or another release"
            raise CommandLineError(f"{plan.recipe} cannot rehearse {fault}: {reason}", hint=hint)

    def find(self, name: str) -> Container | None:
        record = self._record(name)
        return None if record is None else records.describe_container(record, self._state(record))

    def containers(self) -> tuple[Container, ...]:
        return tuple(records.describe_container(record, self._state(record)) for record in self._records())

    def image(self, reference: str) -> Image | None:
        if reference in self._rehearsal.lacks_images:
            return None
        image = records.describe_image(reference)
        pinned = self._rehearsal.image_ids.get(reference) or self._id_of(reference)
        return replace(image, id=pinned or image.id)

    def vitals(self, container: str) -> Vitals:
        """Virtual CPU seconds: one core, and none from where the engine hangs."""
        elapsed = self.elapsed(container)
        if not self._hangs(container):
            return Vitals(elapsed * _CORES, 0.9)
        seconds = busy_seconds(self.log(container))
        return Vitals(seconds * _CORES, 0.0 if elapsed > seconds else 0.9)

    def processes(self, container: str) -> frozenset[int]:
        pid = self._state(self._existing(container)).pid
        return frozenset() if pid is None else frozenset({pid})

    def shared_memory(self, container: str) -> int | Missing:
        """The pinned memory of the simulated engine's memory plan."""
        record = self._existing(container)
        if not self._state(record).running:
            return Missing("it does not run")
        environment = read_environment({**record["env"], **record["simulation"]})
        return round(estimate_memory(parse_settings(record["command"], environment)).host.resident_gib * GIB)

    def bars(self, container: str) -> None:
        """The log has every state of a bar."""

    def stack_command(self, container: str) -> str:
        return f"docker exec {container} py-spy dump --pid 364    # on a Station; here nothing runs that has a stack"

    def stacks(self, container: str) -> str | None:
        return _STACK if self._hangs(container) else None

    def file_sha256(self, container: str, path: str) -> str | None:
        """Of the mounted file where this machine has it; else it is what the recipe pins, as every path exists here."""
        record, fault = self._existing(container), self._fault(container)
        if fault is not None and fault.patched:
            return hashlib.sha256(path.encode()).hexdigest()
        source = _source(record, path)
        if source is not None and source.is_file():
            return hashlib.sha256(source.read_bytes()).hexdigest()
        return cast("str | None", record.get("pinned", {}).get(path))

    def _fault(self, container: str) -> Fault | None:
        return FAULTS.get(self._state(self._existing(container)).fault or "")

    def _hangs(self, container: str) -> bool:
        fault = self._fault(container)
        return fault is not None and fault.hangs

    def _id_of(self, reference: str) -> str | None:
        """The image id of a container that was created from this reference, which may have been a pinned one."""
        return next((record["image_id"] for record in self._records() if record["image"] == reference), None)

    def missing_sources(self, plan: Plan) -> tuple[str, ...]:
        sources = dict.fromkeys(mount.source for mount in plan.container.mounts if not mount.is_volume)
        return tuple(source for source in sources if not self._rehearsal.has_path(source))

    def create(self, plan: Plan, labels: Mapping[str, str], secrets: Mapping[str, str]) -> str:
        if (image := self.image(plan.image)) is None:
            hint = "it has every image that the rehearsal includes"
            raise BackendError(f"image {plan.image} not found on the simulated Station", hint=hint)
        cache = self._directory / "cache"
        version, memory = ENGINES[plan.engine].default_version, self._rehearsal.memory
        simulation = records.simulation_variables(plan, str(cache), version, memory)
        record = records.build_record(plan, labels, secrets, image.id, simulation)
        with self._exclusively():
            self._refuse_taken(plan.container.name)
            self._clean()
            seed_caches(cache, plan.engine_version)
            return self._write_new(record)

    def start(self, container: str) -> None:
        with self._exclusively():
            record = self._existing(container)
            before = self._state(record)
            if before.locked and before.running:
                return
            home = self._home(record)
            command = (self._python, "-m", "gb300serve.simulator.shim", str(home))
            pid = self._processes.spawn(command, self._shim_environment(record), home / "shim.log")
            self._await_start(record, before.start, pid)

    def stop(self, container: str, timeout: float) -> None:
        record = self._existing(container)
        if not self._state(record).locked:
            return
        for number, patience in ((signal.SIGTERM, timeout), (signal.SIGKILL, _KILL_PATIENCE)):
            if self._end(record, number, patience):
                return
        message = f"the simulated container {record['name']} (process {self._state(record).pid}) does not stop"
        raise BackendError(message, hint="kill the process yourself")

    def rename(self, container: str, name: str) -> None:
        with self._exclusively():
            record = self._existing(container)
            self._refuse_taken(name)
            self._write(record | {"name": name})

    def remove(self, container: str) -> None:
        with self._exclusively():
            record = self._existing(container)
            # The shim of an engine that has ended holds the lock a moment longer; then `_end` only waits.
            if self._state(record).running or not self._end(record, signal.SIGKILL, _KILL_PATIENCE):
                raise BackendError(f"the simulated container {record['name']} is running", hint="stop it first")
            shutil.rmtree(self._home(record).rename(self._containers / f".gone-{record['id']}"))

    def set_restart(self, container: str, policy: str) -> None:
        with self._exclusively():
            self._write(self._existing(container) | {"restart_policy": policy})

    def elapsed(self, container: str) -> float:
        state = self._state(self._existing(container))
        if state.started_at is None:
            return 0.0
        until = self._clock.now() if state.running else state.finished_at or state.last_seen or state.started_at
        return max(0.0, (until - state.started_at) * state.speed)

    def follow(self, container: str, every: float) -> Iterator[LogLine | None]:
        record = self._existing(container)
        begun = self._state(record)
        if not begun.start:
            return iter(())

        def has_ended() -> bool:
            state = self._state(record)
            return state.start != begun.start or not state.running

        log, poll = self._home(record) / records.LOG, records.poll_interval(begun.speed)
        return records.follow_log(log, has_ended, self._clock, every, poll)

    def log(self, container: str, tail: int | None = None) -> Iterator[LogLine]:
        return iter(deque(records.read_log(self._home(self._existing(container)) / records.LOG), maxlen=tail))

    def _home(self, record: Mapping[str, Any]) -> Path:
        return self._containers / str(record["id"])

    def _records(self) -> list[dict[str, Any]]:
        contents = (records.read_json(path / records.CONTAINER) for path in self._containers.glob("[!.]*"))
        return sorted((record for record in contents if record is not None), key=lambda record: record["created_at"])

    def _record(self, name: str) -> dict[str, Any] | None:
        known = self._records()
        named = (record for record in known if name in (record["name"], record["id"]))
        short = (record for record in known if len(name) >= _SHORT_ID and record["id"].startswith(name))
        return next(named, None) or next(short, None)

    def _existing(self, name: str) -> dict[str, Any]:
        if (record := self._record(name)) is None:
            suggest = (Action("status", "list the containers", ref=""),)
            raise BackendError(f"no simulated container {name}", suggest=suggest)
        return record

    def _state(self, record: Mapping[str, Any]) -> records.State:
        home = self._home(record)
        # The lock first: a shim records the end before it releases the lock.
        locked, log = records.is_locked(home / records.LOCK), home / records.LOG
        written = log.stat().st_mtime if log.exists() else None
        return records.parse_state(records.read_json(home / records.STATE), locked=locked, last_seen=written)

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Hold the Station's lock while containers change. Raises BackendError if the directory is not writable."""
        try:
            self._containers.mkdir(mode=0o700, parents=True, exist_ok=True)
            with records.hold_lock(self._directory / records.LOCK):
                yield
        except OSError as error:
            message = f"the simulated Station cannot write {self._directory}: {error.strerror or error}"
            hint = "free disk space, or set another directory: `state: DIR` in the site file"
            raise BackendError(message, hint=hint) from error

    def _refuse_taken(self, name: str) -> None:
        holder = next((record for record in self._records() if record["name"] == name), None)
        if holder is not None:
            message = f"the name {name} is in use by simulated container {holder['id'][:12]}"
            raise BackendError(message, hint="remove or rename that container, or choose another container.name")

    def _clean(self) -> None:
        """Remove the residue of a tool that was killed while it created or removed a container."""
        for residue in self._containers.glob(".*"):
            shutil.rmtree(residue)

    def _write_new(self, record: dict[str, Any]) -> str:
        now = self._clock.now()
        identity = hashlib.sha256(f"{record['name']} {now!r} {len(self._records())}".encode()).hexdigest()
        fresh = self._containers / f".new-{identity}"
        fresh.mkdir(mode=0o700)
        records.write_json(fresh / records.CONTAINER, {**record, "id": identity, "created_at": now})
        fresh.rename(self._containers / identity)
        return identity

    def _write(self, record: dict[str, Any]) -> None:
        records.write_json(self._home(record) / records.CONTAINER, record)

    def _shim_environment(self, record: Mapping[str, Any]) -> dict[str, str]:
        plan = self._rehearsal.afflicts
        applies = plan is None or digest(plan) == record["labels"].get(LABEL_PLAN)
        paths = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(_PACKAGE)}
        fault = {FAULT: self._rehearsal.fault} if applies and self._rehearsal.fault else {}
        return {**paths, SPEED: repr(self._rehearsal.speed), **fault}

    def _await_start(self, record: Mapping[str, Any], before: int, pid: int) -> None:
        """Wait until the shim has recorded that the engine runs, or has run."""
        until = self._clock.now() + _START_PATIENCE
        while True:
            alive = self._processes.start_mark(pid) is not None
            state = self._state(record)
            if state.start > before and state.pid is not None:
                return
            if not alive or self._clock.now() > until:
                output = (self._home(record) / "shim.log").read_text(encoding="utf-8", errors="replace").strip()
                reason = output.rpartition("\n")[2] or "its shim ended without output"
                message = f"the simulated container {record['name']} did not start: {reason}"
                raise BackendError(message, hint="see shim.log next to its container.json")
            self._clock.sleep(_POLL)

    def _end(self, record: Mapping[str, Any], number: int, patience: float) -> bool:
        """Send a signal to the engine and wait until its lock is released; True if it has ended."""
        until, sent = self._clock.now() + patience, False
        while True:
            state = self._state(record)
            if not state.locked:
                return True
            if not sent and state.pid is not None and state.exit_code is None:
                sent = self._processes.kill(state.pid, number)
            if self._clock.now() >= until:
                return False
            self._clock.sleep(_POLL)


def busy_seconds(lines: Iterable[LogLine]) -> float:
    """When the engine last did anything: its last line that is no heartbeat."""
    return max((line.elapsed for line in lines if _HEARTBEAT not in line.text), default=0.0)


def _source(record: dict[str, Any], path: str) -> Path | None:
    """The file on this machine that a path in the container leads to, by its longest mount."""
    wanted = PurePosixPath(path)
    for target, source in sorted(record.get("mounts", {}).items(), key=lambda pair: -len(pair[0])):
        if wanted == PurePosixPath(target) or PurePosixPath(target) in wanted.parents:
            return Path(source) / wanted.relative_to(target)
    return None
