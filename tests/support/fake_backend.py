"""An engine of containers in memory: scripted logs, a clock that only it and its users move, calls that can be cut."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from gb300serve.core.errors import BackendError
from gb300serve.core.values import Missing
from gb300serve.lifecycle.backend import Bars, Container, Image, LogLine, Vitals
from gb300serve.plan.model import Plan
from tests.support.fake_clock import FakeClock


class FakeRefusalError(BackendError):
    """What the engine of containers says when a call makes no sense."""


@dataclass(frozen=True)
class Script:
    """What an engine does: `lines` are (seconds, text) after its start; it answers from `ready_at`; it ends by itself
    after `ends_at` seconds with `exit_code`. `stop_code` is how it ends when asked to; None: it ignores the signal."""

    lines: tuple[tuple[float, str], ...] = ()
    ready_at: float | None = None
    ends_at: float | None = None
    exit_code: int = 1
    oom_killed: bool = False
    stop_code: int | None = 0
    start_error: str | None = None
    shutdown: tuple[str, ...] = ()


@dataclass
class FakeBackend:
    """`scripts` by recipe (`lane/release`), else `script`. `before_call` sees every changing call and may raise."""

    clock: FakeClock = field(default_factory=FakeClock)
    script: Script = Script()
    scripts: dict[str, Script] = field(default_factory=dict)
    images: dict[str, Image] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    speed: float = 1.0
    kind: Literal["docker", "sim"] = "docker"
    calls: list[str] = field(default_factory=list)
    before_call: Callable[[str], None] = lambda call: None
    after_call: Callable[[str], None] = lambda call: None

    def __post_init__(self) -> None:
        self._containers: dict[str, Container] = {}
        self._plans: dict[str, Plan] = {}
        self._scripts: dict[str, Script] = {}
        self._said: dict[str, list[LogLine]] = {}
        self._count = 0

    def add(self, container: Container, script: Script | None = None, plan: Plan | None = None) -> Container:
        """A container that is there already."""
        self._containers[container.id] = container
        self._scripts[container.id] = script or self.script
        self._said[container.id] = []
        if plan is not None:
            self._plans[container.id] = plan
        return container

    def plan_of(self, container: str) -> Plan | None:
        return self._plans.get(container)

    def script_of(self, container: str) -> Script:
        return self._scripts[container]

    def vitals(self, container: str) -> Vitals | None:
        del container
        return None

    def processes(self, container: str) -> frozenset[int] | None:
        del container
        return None

    def shared_memory(self, container: str) -> int | Missing:
        del container
        return Missing("a fake has no processes")

    def bars(self, container: str) -> Bars | None:
        del container
        return None

    def stack_command(self, container: str) -> str | None:
        del container
        return None

    def stacks(self, container: str) -> str | None:
        del container
        return None

    def file_sha256(self, container: str, path: str) -> str | None:
        raise FakeRefusalError(f"nobody can look into {container} for {path}")

    def check(self) -> None:
        return

    def find(self, name: str) -> Container | None:
        for container in self.containers():
            if name in (container.name, container.id):
                return container
        return None

    def containers(self) -> tuple[Container, ...]:
        for key in self._containers:
            self._age(key)
        return tuple(self._containers.values())

    def image(self, reference: str) -> Image | None:
        return self.images.get(reference)

    def missing_sources(self, plan: Plan) -> tuple[str, ...]:
        return self.missing

    def create(self, plan: Plan, labels: Mapping[str, str], secrets: Mapping[str, str]) -> str:
        self._begin(f"create {plan.container.name}")
        if self.find(plan.container.name):
            raise FakeRefusalError(f"the name {plan.container.name} is in use")
        self._count += 1
        key = f"id{self._count}"
        command = plan.command
        for name, value in secrets.items():
            command = tuple(word.replace(f"${{secret:{name}}}", value) for word in command)
        created = Container(
            id=key,
            name=plan.container.name,
            image=plan.image,
            image_id=self.images[plan.image].id,
            state="created",
            labels={**plan.container.labels, **labels},
            command=command,
            created_at=self.clock.now(),
            host_network=plan.container.network == "host",
            gpus=plan.container.gpus,
            env={**plan.container.env, **secrets},
            stop_timeout=plan.container.stop_timeout,
        )
        self.add(created, self.scripts.get(plan.recipe, self.script), plan)
        self.after_call(self.calls[-1])
        return key

    def start(self, container: str) -> None:
        key = self._begin("start", container)
        if self._containers[key].state == "running":
            return
        error = self._scripts[key].start_error
        if error is not None:
            self._change(key, exit_code=128, error=error)
            raise FakeRefusalError(error)
        self._said[key] = []
        self._change(
            key, state="running", started_at=self.clock.now(), finished_at=None, exit_code=None, oom_killed=False
        )
        self.after_call(self.calls[-1])

    def stop(self, container: str, timeout: float) -> None:
        key = self._begin("stop", container)
        script = self._scripts[key]
        if self._containers[key].state in {"running", "paused", "restarting"}:
            self.clock.sleep(timeout if script.stop_code is None else 1.0)
            self._said[key] += [LogLine(text, self.elapsed(key)) for text in script.shutdown]
            self._end(key, 137 if script.stop_code is None else script.stop_code, self.clock.now())
        self.after_call(self.calls[-1])

    def rename(self, container: str, name: str) -> None:
        key = self._begin("rename", container, name)
        if self.find(name):
            raise FakeRefusalError(f"the name {name} is in use")
        self._change(key, name=name)
        self.after_call(self.calls[-1])

    def remove(self, container: str) -> None:
        key = self._begin("remove", container)
        if self._containers[key].state == "running":
            raise FakeRefusalError(f"{container} is running")
        del self._containers[key]
        self.after_call(self.calls[-1])

    def set_restart(self, container: str, policy: str) -> None:
        key = self._begin("restart", container, policy)
        self._change(key, restart_policy=policy)
        self.after_call(self.calls[-1])

    def elapsed(self, container: str) -> float:
        found = self.find(container)
        if found is None or found.started_at is None:
            return 0.0
        return ((found.finished_at or self.clock.now()) - found.started_at) * self.speed

    def follow(self, container: str, every: float) -> Iterator[LogLine | None]:
        key = self._key(container)
        begun = self._containers[key].started_at
        told = 0
        while self._containers[key].started_at == begun:
            lines = self._lines(key)
            if told < len(lines):
                told += 1
                yield lines[told - 1]
            elif self._containers[key].state != "running":
                return
            else:
                silent = self._silence(key, every * self.speed)
                self.clock.sleep(silent / self.speed)
                self._age(key)
                if silent >= every * self.speed:
                    yield None

    def log(self, container: str, tail: int | None = None) -> Iterator[LogLine]:
        lines = self._lines(self._key(container))
        yield from lines if tail is None else lines[len(lines) - min(tail, len(lines)) :]

    def serving(self, port: int) -> Container | None:
        """Which container answers on the port of the host; the first that listened keeps it."""
        for container in sorted(self.containers(), key=lambda each: each.started_at or 0.0):
            plan, ready_at = self._plans.get(container.id), self._scripts[container.id].ready_at
            if container.state != "running" or plan is None or plan.port != port or ready_at is None:
                continue
            if self.elapsed(container.id) >= ready_at:
                return container
        return None

    def _begin(self, call: str, container: str | None = None, *words: str) -> str:
        key = self._key(container) if container is not None else ""
        name = [self._containers[key].name] if key else []
        self.calls.append(" ".join((call, *name, *words)))
        self.before_call(self.calls[-1])
        return key

    def _key(self, container: str) -> str:
        found = self.find(container)
        if found is None:
            raise FakeRefusalError(f"no such container: {container}")
        return found.id

    def _change(self, key: str, **changes: object) -> None:
        self._containers[key] = replace(self._containers[key], **changes)  # type: ignore[arg-type]  # any field of it

    def _age(self, key: str) -> None:
        """Let a running container end by itself when its time has come."""
        container, script = self._containers[key], self._scripts[key]
        if container.state != "running" or container.started_at is None or script.ends_at is None:
            return
        end = container.started_at + script.ends_at / self.speed
        if self.clock.now() >= end:
            self._end(key, script.exit_code, end, oom_killed=script.oom_killed)

    def _end(self, key: str, exit_code: int, at: float, *, oom_killed: bool = False) -> None:
        self._change(key, state="exited", finished_at=at, exit_code=exit_code, oom_killed=oom_killed)

    def _lines(self, key: str) -> list[LogLine]:
        """All it has said since its last start."""
        elapsed = self.elapsed(key)
        started = self._containers[key].started_at is not None
        scripted = [LogLine(text, at) for at, text in self._scripts[key].lines if started and at <= elapsed + 1e-3]
        return scripted + self._said[key]

    def _silence(self, key: str, limit: float) -> float:
        """Seconds, in its own time, until it says or does something, at most `limit`."""
        script, elapsed = self._scripts[key], self.elapsed(key)
        moments = [at for at, _ in script.lines] + ([script.ends_at] if script.ends_at is not None else [])
        return min([limit, *(at - elapsed for at in moments if at > elapsed + 1e-3)])
