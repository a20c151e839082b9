"""Judges what a command that was killed left behind, by reading it itself: nothing of gb300serve reads it here."""

import fcntl
import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.request import Request, urlopen

from tests.support.program import Program, Result
from tests.support.station import Docker

LIVE = {"booting", "tuning", "stalled", "ready", "degraded"}
ENDED = {"stopped", "failed", "died"}
_UNFINISHED = {"launching", "booting"}


@dataclass(frozen=True, slots=True)
class Seen:
    """A container of the lane. `logs` are what it has said in each of its starts, in the place's own format."""

    id: str
    name: str
    release: str
    live: bool
    logs: tuple[bytes, ...]


class Place(Protocol):
    """Where lanes run."""

    @property
    def on(self) -> str: ...

    def containers(self) -> tuple[Seen, ...]: ...


@dataclass(frozen=True, slots=True)
class SimulatedPlace:
    """The simulated Station below a state directory."""

    state: Path
    on: str = "sim"

    def containers(self) -> tuple[Seen, ...]:
        return tuple(map(_simulated, sorted((self.state / "sim" / "containers").glob("[!.]*"))))


def _simulated(home: Path) -> Seen:
    record = json.loads((home / "container.json").read_text())
    logs = tuple(path.read_bytes() for path in sorted(home.glob("log*.jsonl")))
    lock, state = home / "lock", home / "state.json"
    # The lock first: a shim writes the exit code before it releases the lock.
    locked = lock.exists() and not is_free(lock)
    live = locked and not (state.exists() and json.loads(state.read_text()).get("exit_code") is not None)
    return Seen(record["id"], record["name"], record["labels"]["gb300serve.release"], live, logs)


@dataclass(frozen=True, slots=True)
class DockerPlace:
    """A Docker Engine; the containers whose names begin with `name`."""

    docker: Docker
    name: str
    on: str = "docker"

    def containers(self) -> tuple[Seen, ...]:
        ids = self.docker("ps", "--all", "--quiet", "--no-trunc", "--filter", f"name=^/{self.name}").split()
        return tuple(map(self._seen, ids))

    def _seen(self, container: str) -> Seen:
        (found,) = json.loads(self.docker("inspect", container))
        log = self.docker("logs", "--timestamps", container).encode()
        live = found["State"]["Running"] or found["State"]["Restarting"]
        return Seen(
            container, found["Name"].removeprefix("/"), found["Config"]["Labels"]["gb300serve.release"], live, (log,)
        )


def is_free(lock: Path) -> bool:
    """Nobody holds the file's exclusive lock."""
    descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


@dataclass(frozen=True, slots=True)
class Aftermath:
    """One lane of a program's. `kept` are containers that must outlive everything, with their logs."""

    program: Program
    place: Place
    state: Path
    kept: tuple[Seen, ...]

    def judge(self) -> tuple[Seen, ...]:
        """What holds at every moment, whoever was killed; the containers that there are."""
        self.entries()
        self.runs()
        assert all(is_free(lock) for lock in (self.state / f"{self.place.on}.lock", self.state / "sim" / "lock")
                   if lock.exists()), "a lock is held by nobody that lives"  # fmt: skip
        now = self.place.containers()
        live = [each for each in now if each.live]
        assert len(live) <= 1, f"a doubled lane: {live}"
        assert len({each.name for each in now}) == len(now)
        for was in self.kept:
            (still,) = [each for each in now if each.id == was.id]
            assert still.release == was.release
            for log in was.logs:
                assert any(each.startswith(log) for each in still.logs), f"{still.name} has lost its log"
        return now

    def judge_status(self) -> None:
        """`status` says what is so; what was begun before the kill may come to its end meanwhile."""
        before = self.place.containers()
        shown = self.program.run("status", "--on", self.place.on, "--json")
        assert shown.code == 0, shown.err
        assert shown.document["schema"] == "gb300serve.status/1"
        lanes = {each["container"]: each for each in shown.document["lanes"]}
        after = {each.name: each for each in self.place.containers()}
        assert {name: each["release"] for name, each in lanes.items()} == {each.name: each.release for each in before}
        for was in before:
            states = {state for each in (was, after[was.name]) for state in (LIVE if each.live else ENDED)}
            assert lanes[was.name]["state"] in states, (lanes[was.name], was.live)

    def judge_up(self, up: Result, release: str, url: str) -> None:
        """It was not refused, the lane answers, and no launch is left without its end."""
        assert up.code in {0, 130}, up.err
        (serves,) = [each for each in self.judge() if each.live]
        assert serves.release == release
        assert answers(url)
        self.judge_settled()

    def judge_down(self, down: Result) -> None:
        assert down.code == 0, down.err
        assert [each for each in self.judge() if each.live] == []
        self.judge_settled()

    def judge_settled(self) -> None:
        """Every launch that has begun has come to an end in its record and in the journal."""
        unfinished = [run for run in self.runs() if run["state"] in _UNFINISHED]
        assert unfinished == []
        told = [each["run"] for each in self.entries()]
        assert [run["run"] for run in self.runs() if told.count(run["run"]) != 1] == []

    def entries(self) -> list[dict[str, Any]]:
        """The journal, each line of it whole."""
        path = self.state / "journal.jsonl"
        text = path.read_text(encoding="ascii") if path.exists() else ""
        assert text == "" or text.endswith("\n")
        assert not (self.state / "journal.torn").exists()
        return [json.loads(line) for line in text.splitlines()]

    def runs(self) -> list[dict[str, Any]]:
        """The records, the oldest first; one that is there is whole, and so is everything that it stands on."""
        found = []
        for directory in sorted((self.state / "runs").glob("[!.]*")):
            record = directory / "run.json"
            if not record.exists():
                continue
            run = json.loads(record.read_text(encoding="utf-8"))
            assert (run["schema"], run["run"]) == ("gb300serve.run/1", directory.name)
            assert json.loads((directory / "plan.json").read_text(encoding="utf-8"))["schema"] == "gb300serve.plan/1"
            assert all((directory / name).stat().st_size for name in ("recipe.yaml", "site.yaml", "command"))
            events = directory / "events.jsonl"
            assert all(json.loads(line) for line in _lines(events))
            found.append(run)
        return found


def _lines(path: Path) -> Iterable[str]:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text == "" or text.endswith("\n")
    return text.splitlines()


def answers(url: str) -> bool:
    """A completion comes back."""
    with urlopen(f"{url}/v1/models", timeout=10) as listed:
        (model,) = json.load(listed)["data"]
    body = {"model": model["id"], "messages": [{"role": "user", "content": "Say one word."}], "max_tokens": 4}
    asked = Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(asked, timeout=30) as answer:
        return int(json.load(answer)["usage"]["completion_tokens"]) > 0


def answers_at_last(url: str, seconds: float = 60.0) -> bool:
    """The same, of a lane that may still boot."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            return answers(url)
        except OSError:
            time.sleep(0.05)
    return False
