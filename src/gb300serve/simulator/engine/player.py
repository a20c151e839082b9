"""Plays a script in virtual time: writes, binds, listens, handles signals, ends."""

import fcntl
import os
import select
import signal
import socket
import sys
import termios
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from gb300serve.simulator.engine.http import EngineServer, bound_socket
from gb300serve.simulator.engine.registry import ENGINES
from gb300serve.simulator.engine.script import KILLED, Bind, Event, Exit, Repeat, Save, Script, Serve, Stream, Write
from gb300serve.simulator.engine.service import Service
from gb300serve.simulator.engine.settings import Settings, SimulatorEnvironment, estimate_memory
from gb300serve.simulator.host import store_configs

# While Python imports, the engine, PID 1 of its container, has no handler yet and a signal does nothing.
_IMPORT_SECONDS = 2.0
# Real seconds between two checks that the shim, which holds the pipes, still lives.
_CHECK_SECONDS = 0.5
# Real seconds; a boot changes streams about thirty times.
_SWITCH_SECONDS = 0.001
_MAX_SWITCH_SECONDS = 1.0
_FILES: dict[Stream, int] = {"stdout": 1, "stderr": 2}


class Signals:
    """Signals as bytes on a pipe: a wait ends at once, and a write is never interrupted."""

    def __init__(self) -> None:
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def wait(self, seconds: float) -> bool:
        """Wait; True as soon as a signal arrives."""
        ready, _, _ = select.select([self._read], [], [], max(0.0, seconds))
        return bool(ready and os.read(self._read, 64))


class Player:
    """One run of a script. `started` is the real start of the process and of virtual time."""

    def __init__(
        self, environment: SimulatorEnvironment, signals: Signals, started: float, settings: Settings | None = None
    ) -> None:
        self._speed = environment.speed
        self._engine = ENGINES[environment.engine]
        self._started = started
        self._settings = settings
        self._signals = signals
        self._parent = os.getppid() if environment.shimmed is not None else None
        self._socket: socket.socket | None = None
        self._serving = False
        self._last: Stream = "stdout"

    def play(self, script: Script) -> int:
        """Play the script; returns the exit code."""
        for event in script:
            if self._is_interrupted(event.at):
                return self._end()
            if (code := self._do(event)) is not None:
                return code
        while not self._is_interrupted(None):
            pass
        return self._end()

    def _now(self) -> float:
        return (time.time() - self._started) * self._speed

    def _is_interrupted(self, at: float | None) -> bool:
        """Wait until `at` (None: for one check); True if a signal arrives or the shim ends before that."""
        while True:
            left = _CHECK_SECONDS if at is None else (at - self._now()) / self._speed
            if self._signals.wait(min(left, _CHECK_SECONDS)) and self._now() > _IMPORT_SECONDS:
                return True
            if self._parent is not None and os.getppid() != self._parent:
                return True
            if at is None or self._now() >= at:
                return False

    def _end(self) -> int:
        if not self._serving:
            return self._engine.interrupted
        for event in self._engine.shutdown_script(self._started, self._now()):
            if isinstance(event, Exit):
                return event.code
            self._do(event)
        return 0

    def _do(self, event: Event) -> int | None:
        if isinstance(event, Write):
            self._write(event)
        elif isinstance(event, Bind):
            return self._bind()
        elif isinstance(event, Save):
            self._save(event)
        elif isinstance(event, Serve):
            return self._serve()
        elif isinstance(event, Repeat):
            return self._repeat(event)
        elif isinstance(event, Exit):
            if event.code == KILLED:
                os.kill(os.getpid(), signal.SIGKILL)
            return event.code
        return None

    def _write(self, event: Write) -> None:
        """Write. If the stream changes, first wait until the other pipe is empty, so that readers see the order."""
        if event.stream != self._last:
            until = time.monotonic() + _MAX_SWITCH_SECONDS
            time.sleep(_SWITCH_SECONDS)
            while unread_bytes(_FILES[self._last]) and time.monotonic() < until:
                time.sleep(_SWITCH_SECONDS)
            self._last = event.stream
        write_stream(event.stream, event.text)

    def _bind(self) -> int | None:
        if self._settings is None:
            return None
        try:
            self._socket = bound_socket(self._settings)
        except OSError:
            return self._port_is_taken(self._settings)
        return None

    def _save(self, event: Save) -> None:
        cache = self._settings.environment.cache if self._settings is not None else None
        # vLLM prints nothing about a cache root that it cannot write, and tunes again at every boot.
        with suppress(OSError):
            if cache is not None:
                store_configs(Path(cache), event.path, event.configs)

    def _serve(self) -> int | None:
        if self._settings is None or self._socket is None:
            self._serving = True
            return None
        service = Service(self._settings, estimate_memory(self._settings), self._started)
        try:
            server = EngineServer(self._socket, service, self._engine.handler)
        except OSError:
            # Both had bound the port, and another server listens by now: uvicorn ends with the error of listen(2).
            return self._port_is_taken(self._settings)
        self._serving = True
        threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
        return None

    def _port_is_taken(self, settings: Settings) -> int:
        return self.play(self._engine.endings["port-taken"](settings, self._started, self._now()))

    def _repeat(self, event: Repeat) -> int:
        at = event.at
        while not self._is_interrupted(at):
            stamp = datetime.fromtimestamp(self._started + at, UTC).strftime(event.stamp_format)
            write_stream(event.stream, event.text.replace("{stamp}", stamp))
            at += event.every
        return self._end()


def unread_bytes(descriptor: int) -> int:
    """Bytes in a pipe that are not read yet; 0 if the system does not report it at the writing end (pipe(7))."""
    try:
        count = fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4)
    except OSError:
        return 0
    return int.from_bytes(count, sys.byteorder)


def write_stream(stream: Stream, text: str) -> None:
    """Write the whole text at once; end the process if nobody reads the pipe any more."""
    data = text.encode()
    try:
        while data:
            data = data[os.write(_FILES[stream], data) :]
    except BrokenPipeError:
        sys.exit(1)
