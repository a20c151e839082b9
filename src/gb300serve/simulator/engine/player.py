"""Carries out a script in virtual time: writes, binds, listens, hears signals, ends."""

import fcntl
import os
import select
import signal
import socket
import sys
import termios
import threading
import time
from pathlib import Path

from gb300serve.simulator.engine.http import EngineServer, bound_socket
from gb300serve.simulator.engine.registry import ENGINES
from gb300serve.simulator.engine.script import (
    Bind,
    Event,
    EventTimeline,
    Exit,
    Repeat,
    Save,
    Script,
    Serve,
    Stream,
    Write,
    format_stamp,
)
from gb300serve.simulator.engine.service import Service
from gb300serve.simulator.engine.settings import Settings, SimulatorEnvironment, estimate_memory
from gb300serve.simulator.engine.tuning import store_configs

KILLED = 137
# Python imports: as PID 1 of a container the engine has no handler yet, and a signal does nothing.
_DEAF_SECONDS = 2.0
# How often (real seconds) an idle stand-in looks whether the shim that holds its pipes still lives.
_LOOK_SECONDS = 0.5
# Real seconds; a boot changes streams some thirty times.
_CROSSING_SECONDS = 0.001
_MOST_CROSSING_SECONDS = 1.0
_FILES: dict[Stream, int] = {"stdout": 1, "stderr": 2}


class Signals:
    """Signals as bytes on a pipe, so that waiting ends at once and writing is never cut in the middle."""

    def __init__(self) -> None:
        self._read, write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(write, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)

    def came(self, seconds: float) -> bool:
        """Wait so long; True as soon as a signal came."""
        ready, _, _ = select.select([self._read], [], [], max(0.0, seconds))
        return bool(ready and os.read(self._read, 64))


class Player:
    """One run of a script. `started` is the real start of the process, and of its virtual time."""

    def __init__(
        self, surroundings: SimulatorEnvironment, signals: Signals, started: float, settings: Settings | None = None
    ) -> None:
        self._speed = surroundings.speed
        self._kind = ENGINES[surroundings.engine]
        self._started = started
        self._settings = settings
        self._signals = signals
        self._parent = os.getppid() if surroundings.shimmed is not None else None
        self._held: socket.socket | None = None
        self._serving = False
        self._last: Stream = "stdout"

    def play(self, script: Script) -> int:
        """Carry out the script; returns the exit code."""
        for event in script:
            if self._interrupted(event.at):
                return self._ended()
            code = self._do(event)
            if code is not None:
                return code
        while not self._interrupted(None):
            pass
        return self._ended()

    def _now(self) -> float:
        return (time.time() - self._started) * self._speed

    def _interrupted(self, at: float | None) -> bool:
        """Wait until `at` (None: for one look); True when a signal came in between, or the shim is gone."""
        while True:
            left = _LOOK_SECONDS if at is None else (at - self._now()) / self._speed
            if self._signals.came(min(left, _LOOK_SECONDS)) and self._now() > _DEAF_SECONDS:
                return True
            if self._parent is not None and os.getppid() != self._parent:
                return True
            if at is None or self._now() >= at:
                return False

    def _ended(self) -> int:
        if not self._serving:
            return self._kind.interrupted
        for event in self._kind.shutdown(self._started, self._now()):
            if isinstance(event, Exit):
                return event.code
            self._do(event)
        return 0

    def _do(self, event: Event) -> int | None:
        """Carry out one event; an exit code when it ends the process."""
        if isinstance(event, Write):
            self._say(event)
        elif isinstance(event, Bind):
            return self._bind()
        elif isinstance(event, Save):
            self._save(event)
        elif isinstance(event, Serve):
            self._serve()
        elif isinstance(event, Repeat):
            return self._repeat(event)
        elif isinstance(event, Exit):
            if event.code == KILLED:
                os.kill(os.getpid(), signal.SIGKILL)
            return event.code
        return None

    def _say(self, event: Write) -> None:
        """A reader of two pipes cannot tell which was written first: it gets a moment to empty the other one, and
        longer where its machine is busy."""
        if event.stream != self._last:
            until = time.monotonic() + _MOST_CROSSING_SECONDS
            time.sleep(_CROSSING_SECONDS)
            while unread_bytes(_FILES[self._last]) and time.monotonic() < until:
                time.sleep(_CROSSING_SECONDS)
            self._last = event.stream
        write_stream(event.stream, event.text)

    def _bind(self) -> int | None:
        if self._settings is None:
            return None
        try:
            self._held = bound_socket(self._settings)
        except OSError:
            tape = EventTimeline(self._started)
            tape.until(self._now())
            self._kind.port_taken(tape, self._settings)
            return self.play(tape.script)
        return None

    def _save(self, event: Save) -> None:
        cache = self._settings.surroundings.cache if self._settings is not None else None
        if cache is None:
            return
        try:
            store_configs(Path(cache), event.path, event.configs)
        except OSError:
            # The engine says nothing of a cache root that it cannot write, and tunes again at every boot.
            return

    def _serve(self) -> None:
        self._serving = True
        if self._settings is None or self._held is None:
            return
        service = Service(self._settings, estimate_memory(self._settings), self._started)
        try:
            server = EngineServer(self._held, service, self._kind.handler)
        except OSError:
            # Another server began to listen on the port that both had bound: this one stays alive, deaf and silent.
            return
        threading.Thread(target=server.serve_forever, name="http", daemon=True).start()

    def _repeat(self, event: Repeat) -> int:
        at = event.at
        while not self._interrupted(at):
            write_stream(event.stream, event.text.replace("{stamp}", format_stamp(self._started + at)))
            at += event.every
        return self._ended()


def unread_bytes(descriptor: int) -> int:
    """Bytes in a pipe that nobody has read yet, where the system tells that at its writing end (Linux: pipe(7))."""
    try:
        answer = fcntl.ioctl(descriptor, termios.FIONREAD, b"\0" * 4)
    except OSError:
        return 0
    return int.from_bytes(answer, sys.byteorder)


def write_stream(stream: Stream, text: str) -> None:
    """The whole text at once; a reader that went away ends the process, as nobody is left to boot for."""
    data = text.encode()
    try:
        while data:
            data = data[os.write(_FILES[stream], data) :]
    except BrokenPipeError:
        sys.exit(1)
