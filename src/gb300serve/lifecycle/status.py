"""What every lane is doing: containers of ours, and strangers that look like a release or hold the GPU."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gb300serve.boot.diagnosis import Diagnosis
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from gb300serve.boot.receipts import UNKEPT
from gb300serve.core.errors import CommandLineError, ServiceError
from gb300serve.core.ports import UnreachableError
from gb300serve.journal.history import RunHistory
from gb300serve.lifecycle.backend import LABEL_LANE, LABEL_RELEASE, Container, GpuHeld
from gb300serve.lifecycle.drift import Drift, drift, from_journal, looks_like
from gb300serve.lifecycle.identity import against_rivals, birth, endpoint_of, is_believed, served_names
from gb300serve.lifecycle.launch import Launch, is_failed, moment, ref_of, release_of, title
from gb300serve.lifecycle.logs import diagnose, died
from gb300serve.lifecycle.reconcile import live, on_gpu
from gb300serve.lifecycle.tools import Tools
from gb300serve.probe.endpoint import ServerEndpoint, health, is_alive
from gb300serve.probe.readiness import Readiness, check_presence

LaneState = Literal["ready", "booting", "tuning", "stalled", "failed", "stopped", "died", "degraded", "foreign"]


NOTHING_KNOWN = RunHistory()
# Restarts without an answer that make a loop: as many as `diagnose` counts in one log.
LOOP = 3


@dataclass(frozen=True, slots=True)
class LaneStatus:
    """One entry of `gb300serve.status/1`. `lane` and `release` of a foreign one are those it looks like, or None.

    `since` is UTC: running since, or ended at. `health` holds what is known: `model`, `max_model_len` (tokens),
    `identity`, `requests_running`, `requests_waiting`, `kv_cache_usage` (0 to 1), `why`, `reason`, `exit_code`,
    `oom_killed`, `restarts`, `error`; of a foreign one `gpus`, `gpu_memory` (bytes) and `why`.
    """

    lane: str | None
    release: str | None
    on: Literal["docker", "sim"]
    state: LaneState
    phase: str | None
    container: str
    image: str
    since: str | None
    drift: tuple[Drift, ...] = ()
    health: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """One object of `lanes`."""
        return {
            "lane": self.lane,
            "release": self.release,
            "on": self.on,
            "state": self.state,
            "phase": self.phase,
            "container": self.container,
            "image": self.image,
            "since": self.since,
            "drift": [each.as_json() for each in self.drift],
            "health": dict(self.health),
        }


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was found out about a container."""

    state: LaneState
    phase: Phase | None = None
    health: Mapping[str, Any] = field(default_factory=dict)


def lanes(tools: Tools, known: tuple[Launch, ...] = (), history: RunHistory = NOTHING_KNOWN) -> tuple[LaneStatus, ...]:
    """Live ones first. `known` are launches of releases, to compare with. Raises BackendError (7)."""
    containers = tools.backend.containers()
    strangers = any(live(each) and not each.ours for each in containers)
    gpu = tools.gpu.held() if tools.gpu and strangers else None
    found = [each for each in containers if each.ours or _concerns_us(each, known, gpu)]
    found.sort(key=lambda each: (not live(each), each.name))
    return tuple(
        lane_status(each, tools, known, history) if each.ours else stranger(each, tools, known, gpu) for each in found
    )


def stranger(
    container: Container, tools: Tools, known: tuple[Launch, ...] = (), gpu: GpuHeld | None = None
) -> LaneStatus:
    """A container that is not ours: its facts only. Lane and release are those that it looks like."""
    launch = next((each for each in known if looks_like(container, each)), None)
    held = f"; {gpu.sentence(container.id)}" if gpu and live(container) and _has_gpu(container, gpu) else ""
    facts = {
        **_ending(container),
        "gpus": container.gpus,
        "gpu_memory": gpu.containers.get(container.id) if gpu else None,
        "why": f"gb300serve did not create it (image {container.image}){held}",
    }
    return LaneStatus(
        lane=launch.plan.lane if launch else container.labels.get(LABEL_LANE),
        release=launch.release if launch else container.labels.get(LABEL_RELEASE),
        on=tools.backend.kind,
        state="foreign",
        phase=None,
        container=container.name,
        image=container.image,
        since=_since(container),
        health={key: value for key, value in facts.items() if value is not None},
    )


def lane_status(
    container: Container, tools: Tools, known: tuple[Launch, ...] = (), history: RunHistory = NOTHING_KNOWN
) -> LaneStatus:
    """One container of ours; its log is read only when it does not answer."""
    launch = _launch_of(container, known)
    asked = history.was_asked_to_end(container.id, container.finished_at)
    due = history.should_run(container.id, tools.backend.kind)
    seen = _seen(container, launch, tools, asked=asked, due=due)
    if seen.state == "ready":
        seen = _by_receipts(seen, container, history)
    return LaneStatus(
        lane=container.labels.get(LABEL_LANE),
        release=container.labels.get(LABEL_RELEASE),
        on=tools.backend.kind,
        state=seen.state,
        phase=seen.phase.value if seen.phase else None,
        container=container.name,
        image=container.image,
        since=_since(container),
        drift=_drift(container, launch, tools, history),
        health={key: value for key, value in seen.health.items() if value is not None},
    )


def _by_receipts(seen: _Seen, container: Container, history: RunHistory) -> _Seen:
    """Degraded where its last launch found that its boot did not show what a good one shows (exit 9)."""
    run = next((each for each in reversed(history.runs) if each.container_id == container.id), None)
    if run is None or (run.exit or {}).get("tool") != ServiceError.exit_code:
        return seen
    unkept = [each["name"] for each in run.receipts if each.get("state") in UNKEPT]
    why = f"its boot did not keep: {'; '.join(map(str, unkept))} (gb300serve receipts)" if unkept else None
    return replace(seen, state="degraded", health={**seen.health, "why": why})


def _concerns_us(container: Container, known: tuple[Launch, ...], gpu: GpuHeld | None) -> bool:
    """A stranger that looks like one of our releases, has the name of one, or holds the GPU."""
    if any(container.name == launch.name or looks_like(container, launch) for launch in known):
        return True
    return live(container) and _has_gpu(container, gpu)


def _has_gpu(container: Container, gpu: GpuHeld | None) -> bool:
    """It was given one, or computes on one however it came to it."""
    return any(on_gpu("all", (container,))) or (gpu is not None and container.id in gpu.containers)


def _launch_of(container: Container, known: tuple[Launch, ...]) -> Launch | None:
    return next((each for each in known if f"{each.plan.lane}/{each.release}" == release_of(container)), None)


def _drift(container: Container, launch: Launch | None, tools: Tools, history: RunHistory) -> tuple[Drift, ...]:
    """A container that was set aside, or kept, is no longer held to its recipe: only to the journal."""
    held = launch is not None and (live(container) or container.name == launch.name)
    of_recipe = drift(container, launch, tools.backend.image(launch.plan.image)) if launch and held else ()
    return (*of_recipe, *from_journal(container, tools.backend.kind, history))


def _since(container: Container) -> str | None:
    at = container.started_at if live(container) else container.finished_at or container.created_at
    return None if at is None else moment(at).replace(" ", "T")


def _seen(container: Container, launch: Launch | None, tools: Tools, *, asked: bool, due: bool) -> _Seen:
    """`asked`: a command of ours has taken it away. `due`: the journal says that it runs."""
    if container.state == "running":
        return _running(container, launch, tools)
    if container.state in {"paused", "restarting"}:
        state: LaneState = "degraded" if container.state == "paused" else "died"
        why = f"the container is {container.state}"
        return _Seen(state, None, {"why": why, **_ending(container), **_looping(container)})
    if container.started_at is None:
        return _Seen("failed" if container.error else "stopped", None, _ending(container))
    return _ended(container, diagnose(container, tools), asked=asked, due=due)


def _running(container: Container, launch: Launch | None, tools: Tools) -> _Seen:
    endpoint = endpoint_of(container, launch)
    answer = _presence(container, launch, tools, endpoint)
    facts = {**_answered(answer), "restarts": container.restart_count or None}
    if answer.state == "ready" and endpoint is not None:
        try:
            lives = is_alive(health(tools.http, endpoint), endpoint)
        except UnreachableError:
            lives = False
        why = None if lives else "/health does not answer with 200: its engine is dead or dying"
        return _Seen("ready" if lives else "degraded", Phase.SERVING, {**facts, "why": why})
    diagnosis = diagnose(container, tools)
    state: LaneState = "degraded" if diagnosis.state == "ready" else diagnosis.state
    told = {**facts, "reason": _reason(diagnosis), "why": answer.why, **_looping(container)}
    return _Seen("died" if container.restart_count >= LOOP else state, diagnosis.phase, told)


def _presence(container: Container, launch: Launch | None, tools: Tools, endpoint: ServerEndpoint | None) -> Readiness:
    """Who answers at its port, and whether that is it."""
    if endpoint is None:
        return Readiness("silent", "no port of the host leads to its engine")
    started_at = container.created_at if container.started_at is None else container.started_at
    told = birth(container, endpoint, tools.backend)
    answer = check_presence(tools.http, endpoint, served_names(container, launch), started_at, told.figures)
    if answer.state == "ready" and not is_believed(answer, endpoint, told):
        return replace(answer, state="other-server", why="it has not booted, and another server answers on its port")
    return against_rivals(answer, container, endpoint, tools.backend)


def _looping(container: Container) -> dict[str, Any]:
    """Its restart policy starts it again and again."""
    if container.restart_count < LOOP:
        return {}
    why = f"its restart policy has started it {container.restart_count} times: end that with `gb300serve down`"
    return {"reason": Reason.CRASH_LOOP.value, "why": why}


def _ended(container: Container, diagnosis: Diagnosis, *, asked: bool, due: bool) -> _Seen:
    served = diagnosis.phase is Phase.SERVING or any(phase is Phase.SERVING for phase, _ in diagnosis.phases)
    state: LaneState = "stopped"
    if is_failed(container):
        state = "failed"
    elif not asked and (died(container, diagnosis) or (due and diagnosis.state != "stopped")):
        state = "died" if served else "failed"
    return _Seen(state, diagnosis.phase, {**_ending(container), "reason": _reason(diagnosis)})


def _reason(diagnosis: Diagnosis) -> str | None:
    return diagnosis.reason.value if diagnosis.reason else None


def _ending(container: Container) -> dict[str, Any]:
    return {
        "exit_code": container.exit_code,
        "oom_killed": container.oom_killed or None,
        "restarts": container.restart_count or None,
        "error": container.error or None,
    }


def _answered(answer: Readiness) -> dict[str, Any]:
    measured = answer.metrics
    facts: dict[str, Any] = {"identity": answer.identity}
    if answer.model is not None:
        facts |= {"model": answer.model.name, "max_model_len": answer.model.max_model_len}
    if measured is not None:
        facts |= {
            "requests_running": measured.requests_running,
            "requests_waiting": measured.requests_waiting,
            "kv_cache_usage": measured.kv_cache_usage,
        }
    return facts


class ServesWronglyError(ServiceError):
    """It runs and answers, but is not what its recipe describes (exit 9); it is left alone."""

    def __init__(self, launch: Launch, differs: tuple[str, ...]) -> None:
        named = "\n".join(f"  {sentence}" for sentence in differs)
        super().__init__(
            f"{launch.ref} runs already as {launch.name}, but serves wrongly\n{named}",
            hint=f"it keeps running; to launch it anew: {launch.command('down', '--remove')}, then "
            f"{launch.command('up')}",
        )
        self.differs = differs


def look_again(container: Container, launch: Launch, tools: Tools, history: RunHistory) -> tuple[str, ...]:
    """What is to be said beside that it serves: where the journal tells another story.

    Health, served name, the receipts of its boot and drift are looked at, as `status` does. Raises ServesWronglyError.
    """
    seen = lane_status(container, tools, (launch,), history)
    differs = tuple(_differs(seen))
    if differs:
        raise ServesWronglyError(launch, differs)
    return tuple(each.message for each in seen.drift)


def _differs(seen: LaneStatus) -> Iterator[str]:
    if seen.state != "ready":
        why = seen.health.get("why")
        yield f"{seen.state}: {why}" if why else seen.state
    # Who started it is told, and makes it no worse.
    yield from (each.message for each in seen.drift if each.against != "journal")


class SeveralLanesError(CommandLineError):
    """Without a REF only one live lane can be meant."""

    def __init__(self, verb: str, containers: Iterable[Container]) -> None:
        each = tuple(containers)
        super().__init__(
            f"several lanes are running: {', '.join(title(container) for container in each)}",
            hint="; ".join(f"gb300serve {verb} {ref_of(container)}" for container in each),
        )


def choose(verb: str, containers: Iterable[Container], lane: str | None, release: str | None) -> Container | None:
    """Live ones first, then the one that ran last, failed ones only where there is no other.

    Without lane and release only a live container is meant, and it has to be the only one. None: nothing fits.
    """
    ours = [each for each in containers if each.ours and _means(each, lane, release)]
    running = [each for each in ours if live(each)]
    if len(running) > 1:
        raise SeveralLanesError(verb, running)
    if running or lane is None:
        return running[0] if running else None
    return max(ours, key=lambda each: (not is_failed(each), _last_seen(each)), default=None)


def _means(container: Container, lane: str | None, release: str | None) -> bool:
    if lane is None:
        return True
    if release is None:
        return container.labels.get(LABEL_LANE) == lane
    return ref_of(container) == f"{lane}/{release}"


def _last_seen(container: Container) -> float:
    return container.finished_at or container.started_at or container.created_at
