"""What stands between a simulated container and its engine: `python -m gb300serve.simulator.shim DIR`.

Like containerd's shim it outlives the tool: it runs the engine of DIR/container.json as its child, writes what that
prints to DIR/log.jsonl (one object a record: `at` in virtual seconds since the start, `stream`, `text`), forwards
signals, and writes DIR/state.json when the engine runs and when it has ended. It holds a lock on DIR/lock as long as
it lives, and its engine holds the same lock: whether a container runs is a question to the lock, which no reboot and
no reuse of a process id can answer wrongly.

A program of its own, so it may look at the time and the environment. Exit codes: 0 the engine ended, 3 the container
runs already, 4 DIR holds no container, 5 DIR was deleted under the engine, which was killed.
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

from gb300serve.simulator.engine.settings import FAULT, SHIMMED, SPEED
from gb300serve.simulator.records import CONTAINER, LOCK, LOG, STATE, read_json, write_json

RUNS_ALREADY, NO_CONTAINER, DELETED = 3, 4, 5
_LOOK = 1.0  # seconds: how long an engine may outlive its container's directory
# Others ask the lock by taking it for a moment: a second is a hundred times that.
_LOCK_PATIENCE = 1.0
_STREAMS = ("stdout", "stderr")
_YES = True
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# Would change the stand-in's own interpreter or loader, and says nothing to the engine that it stands for.
_NOT_PASSED = ("PYTHON", "LD_", "DYLD_", "GB300SERVE_SIM_")


def take_lock(directory: Path) -> int | None:
    """The descriptor of the container's lock, to be inherited by the engine; None while another shim has it."""
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
    """The container's environment and the stand-in's settings; of the shim's own only how fast and with what fault."""
    passed = {name: text for name, text in container["env"].items() if not name.startswith(_NOT_PASSED)}
    ours = {name: own[name] for name in (SPEED, FAULT, "PATH", "PYTHONPATH") if name in own}
    return {**passed, **container["simulation"], **ours, SHIMMED: str(ready)}


class Log:
    """The container's log. Pieces that no line feed or carriage return has ended yet are kept back."""

    def __init__(self, path: Path, speed: float) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._speed = speed
        self.started = time.time()
        self._open = dict.fromkeys(_STREAMS, b"")

    def feed(self, stream: str, data: bytes) -> None:
        """Take what came on a stream; whole lines are written at once."""
        *lines, rest = (self._open[stream] + data).split(b"\n")
        for line in lines:
            states = [state for state in line.split(b"\r") if state]
            self._write(stream, states or [b""])
        *states, self._open[stream] = rest.split(b"\r")
        self._write(stream, [state for state in states if state])
        self._file.flush()

    def close(self) -> None:
        """Write what the engine left unfinished."""
        for stream, rest in self._open.items():
            self._write(stream, [rest] if rest else [])
        self._file.close()

    def _write(self, stream: str, texts: list[bytes]) -> None:
        at = max(0.0, (time.time() - self.started) * self._speed)
        for text in texts:
            record = {"at": round(at, 3), "stream": stream, "text": text.decode(errors="replace")}
            self._file.write(json.dumps(record, ensure_ascii=False) + "\n")


class EngineProcess:
    """The child process and the reading ends of its pipes."""

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

    def started(self) -> float:
        """When its virtual time began: it says so once its own imports are done, which are not the engine's."""
        said = b""
        while piece := os.read(self._ready, 64):
            said += piece
        os.close(self._ready)
        return float(said) if said else time.time()

    def copy(self, log: Log, lock: int) -> None:
        """Until both streams have ended. An engine whose lock was deleted answers to nobody any more: it is killed."""
        while self.streams:
            readable = select.select(list(self.streams), [], [], _LOOK)[0]
            if is_deleted(lock):
                os.kill(self.pid, signal.SIGKILL)
            for descriptor in readable:
                data = os.read(descriptor, 65536)
                if data:
                    log.feed(self.streams[descriptor], data)
                else:
                    os.close(descriptor)
                    del self.streams[descriptor]

    def ended(self) -> int:
        """Its exit code, as Docker counts: 128 and the signal's number when one ended it."""
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return 128 - code if code < 0 else code


def is_deleted(lock: int) -> bool:
    """Whether no name is left of the lock's file: the directory was deleted, or another stands in its place."""
    return os.fstat(lock).st_nlink == 0


def rotate_log(directory: Path, start: int) -> Path:
    """A fresh log for this start; the earlier one is kept beside it. Returns its path."""
    log = directory / LOG
    if log.exists():
        log.replace(directory / f"log-{start - 1}.jsonl")
    return log


def run(directory: Path, own: Mapping[str, str]) -> int:
    """One start of the container in `directory`."""
    lock = take_lock(directory)
    if lock is None:
        return RUNS_ALREADY
    container = read_json(directory / CONTAINER)
    if container is None:
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
    log.started = engine.started()
    state |= {"pid": engine.pid, "started_at": log.started}
    write_json(directory / STATE, state)
    engine.copy(log, lock)
    log.close()
    code = engine.ended()
    if is_deleted(lock):
        return DELETED
    for number in _FORWARDED:
        signal.signal(number, signal.SIG_IGN)
    killed = code == 128 + signal.SIGKILL and own.get(FAULT) == "host-oom"
    ending = {"exit_code": code, "finished_at": time.time(), "oom_killed": killed}
    write_json(directory / STATE, {**state, **ending})
    return 0


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), os.environ))
