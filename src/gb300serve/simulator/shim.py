"""The process between a simulated container and its engine: `python -m gb300serve.simulator.shim DIR`.

Like containerd's shim it outlives the tool. It runs the engine of DIR/container.json as its child and writes the
engine's output to DIR/log.jsonl (one object per record: `at` in virtual seconds since the start, `stream`, `text`). It
forwards signals, and writes DIR/state.json when the engine has started and when it has ended. It and its engine hold a
lock on DIR/lock as long as they live: a container runs while its lock is held, whatever a reboot or a reused process
id suggests.

As a program of its own it may read the time and the environment. Exit codes: 0 the engine ended, 3 the container
already runs, 4 DIR contains no container, 5 DIR was deleted and the engine was killed.
"""

import fcntl
import json
import os
import select
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gb300serve.simulator.engine.registry import parse_settings
from gb300serve.simulator.engine.script import KILLED
from gb300serve.simulator.engine.settings import (
    FAULT,
    SHIMMED,
    SPEED,
    estimate_memory,
    is_killed,
    read_environment,
)
from gb300serve.simulator.records import CONTAINER, LOCK, LOG, STATE, read_json, write_json

ALREADY_RUNNING, NO_CONTAINER, DELETED = 3, 4, 5
# Seconds that an engine may outlive its container's directory.
_CHECK_SECONDS = 1.0
# `is_locked` takes the lock for about 10 ms at most.
_LOCK_PATIENCE = 1.0
_STREAMS = ("stdout", "stderr")
_YES = True
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Variables that would change the interpreter or the loader of the simulated engine.
_NOT_PASSED = ("PYTHON", "LD_", "DYLD_", "GB300SERVE_SIM_")


def take_lock(directory: Path) -> int | None:
    """The descriptor of the container's lock, which the engine inherits; None while another shim holds the lock."""
    descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + _LOCK_PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(descriptor)
                return None
            time.sleep(0.01)
        else:
            os.set_inheritable(descriptor, _YES)
            return descriptor


def engine_environment(container: Mapping[str, Any], own: Mapping[str, str], ready: int) -> dict[str, str]:
    """The container's environment and the simulation's variables; speed and fault come from the shim's own."""
    passed = {name: text for name, text in container["env"].items() if not name.startswith(_NOT_PASSED)}
    ours = {name: own[name] for name in (SPEED, FAULT, "PATH", "PYTHONPATH") if name in own}
    return {**passed, **container["simulation"], **ours, SHIMMED: str(ready)}


class Log:
    """The container's log. Text without a line feed or carriage return is buffered."""

    def __init__(self, path: Path, speed: float) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._speed = speed
        self.started = time.time()
        self._rest = dict.fromkeys(_STREAMS, b"")

    def feed(self, stream: str, data: bytes) -> None:
        """Add output of a stream; complete lines are written at once."""
        *lines, rest = (self._rest[stream] + data).split(b"\n")
        for line in lines:
            updates = [update for update in line.split(b"\r") if update]
            self._write(stream, updates or [b""])
        *updates, self._rest[stream] = rest.split(b"\r")
        self._write(stream, [update for update in updates if update])
        self._file.flush()

    def close(self) -> None:
        """Write the buffered text and close the file."""
        for stream, rest in self._rest.items():
            self._write(stream, [rest] if rest else [])
        self._file.close()

    def _write(self, stream: str, texts: list[bytes]) -> None:
        at = max(0.0, (time.time() - self.started) * self._speed)
        for text in texts:
            record = {"at": round(at, 3), "stream": stream, "text": text.decode(errors="replace")}
            self._file.write(json.dumps(record, ensure_ascii=False) + "\n")


class EngineProcess:
    """The engine as a child process, and the reading ends of its pipes."""

    def __init__(self, argv: list[str], container: Mapping[str, Any], own: Mapping[str, str]) -> None:
        pipes = [os.pipe() for _ in _STREAMS]
        self._ready, ready = os.pipe()
        os.set_inheritable(ready, _YES)
        null = os.open(os.devnull, os.O_RDONLY)
        actions = [(os.POSIX_SPAWN_DUP2, null, 0)]
        actions += [(os.POSIX_SPAWN_DUP2, write, number) for number, (_, write) in enumerate(pipes, start=1)]
        self.pid = os.posix_spawn(argv[0], argv, engine_environment(container, own, ready), file_actions=actions)
        for descriptor in (null, ready, *(write for _, write in pipes)):
            os.close(descriptor)
        self.streams = {read: stream for stream, (read, _) in zip(_STREAMS, pipes, strict=True)}

    def await_start(self) -> float:
        """The start of virtual time, which the engine reports when its own imports are done."""
        text = b""
        while piece := os.read(self._ready, 64):
            text += piece
        os.close(self._ready)
        return float(text) if text else time.time()

    def copy(self, log: Log, lock: int) -> None:
        """Copy the output until both streams end. An engine whose lock file was deleted is killed."""
        while self.streams:
            readable = select.select(list(self.streams), [], [], _CHECK_SECONDS)[0]
            if is_deleted(lock):
                os.kill(self.pid, signal.SIGKILL)
            for descriptor in readable:
                data = os.read(descriptor, 65536)
                if data:
                    log.feed(self.streams[descriptor], data)
                else:
                    os.close(descriptor)
                    del self.streams[descriptor]

    def wait(self) -> int:
        """Wait for its exit code; as in Docker, 128 plus the signal's number if a signal ended it."""
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return 128 - code if code < 0 else code


def is_deleted(lock: int) -> bool:
    """Whether the lock file was deleted or replaced."""
    return os.fstat(lock).st_nlink == 0


def rotate_log(directory: Path, start: int) -> Path:
    """The path of the log of this start; the previous log is kept under another name."""
    log = directory / LOG
    if log.exists():
        log.replace(directory / f"log-{start - 1}.jsonl")
    return log


def run(directory: Path, own: Mapping[str, str]) -> int:
    """Start the container in `directory` and wait for its end."""
    if (lock := take_lock(directory)) is None:
        return ALREADY_RUNNING
    if (container := read_json(directory / CONTAINER)) is None:
        return NO_CONTAINER
    start = int((read_json(directory / STATE) or {}).get("start", 0)) + 1
    log_path = rotate_log(directory, start)
    state: dict[str, Any] = {"start": start, "speed": float(own.get(SPEED, "200")), "fault": own.get(FAULT)}
    write_json(directory / STATE, state)
    argv = [sys.executable, "-m", "gb300serve.simulator.engine", *container["command"]]
    engine = EngineProcess(argv, container, own)
    for number in _FORWARDED:
        signal.signal(number, lambda received, _: os.kill(engine.pid, received))
    log = Log(log_path, state["speed"])
    log.started = engine.await_start()
    state |= {"pid": engine.pid, "started_at": log.started}
    write_json(directory / STATE, state)
    engine.copy(log, lock)
    log.close()
    code = engine.wait()
    if is_deleted(lock):
        return DELETED
    for number in _FORWARDED:
        signal.signal(number, signal.SIG_IGN)
    killed = code == KILLED and _lacks_host_memory(container, own)
    ending = {"exit_code": code, "finished_at": time.time(), "oom_killed": killed}
    write_json(directory / STATE, {**state, **ending})
    return 0


def _lacks_host_memory(container: Mapping[str, Any], own: Mapping[str, str]) -> bool:
    if own.get(FAULT) == "host-oom":
        return True
    settings = parse_settings(container["command"], read_environment({**container["env"], **container["simulation"]}))
    return is_killed(settings, estimate_memory(settings))


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), os.environ))
