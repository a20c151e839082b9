"""The state of every lane: our containers, and foreign ones that look like a release or use the GPU."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from gb300serve.boot.diagnosis import LOOP, Diagnosis
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from gb300serve.boot.receipts import UNKEPT
from gb300serve.core.errors import Action, CommandLineError, ServiceError
from gb300serve.core.ports import UnreachableError
from gb300serve.journal.runs import RunHistory
from gb300serve.lifecycle.backend import LABEL_LANE, LABEL_RELEASE, Container, GpuHeld
from gb300serve.lifecycle.drift import Drift, drift, from_journal, looks_like
from gb300serve.lifecycle.identity import (
    boot_identity,
    endpoint_of,
    exclude_other_servers,
    is_plausible,
    served_names,
)
from gb300serve.lifecycle.launch import Launch, describe_container, display_time, is_failed, ref_of, release_of
from gb300serve.lifecycle.logs import diagnose_container, has_died
from gb300serve.lifecycle.reconcile import containers_on_gpu, is_live
from gb300serve.lifecycle.tools import Tools
from gb300serve.probe.endpoint import ServerEndpoint, health, is_alive
from gb300serve.probe.readiness import Readiness, check_liveness, check_presence

LaneState = Literal["ready", "booting", "tuning", "stalled", "failed", "stopped", "died", "degraded", "foreign"]


NOTHING_KNOWN = RunHistory()


@dataclass(frozen=True, slots=True)
class LaneStatus:
    """One entry of `gb300serve.status/1`. A foreign container has the `lane` and `release` that it resembles, or None.

    `since` is UTC: running since, or ended at. `health` has the known facts: `model`, `max_model_len` (tokens),
    `identity`, `liveness` (alive, busy or hung), `requests_running`, `requests_waiting`, `kv_cache_usage` (0 to 1),
    `why`, `reason`, `exit_code`, `oom_killed`, `restarts`, `error`; for a foreign one `gpus`, `gpu_memory`
    (bytes) and `why`.
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
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return values | {"drift": [difference.as_json() for difference in self.drift], "health": dict(self.health)}


@dataclass(frozen=True, slots=True)
class _Observation:
    state: LaneState
    phase: Phase | None = None
    health: Mapping[str, Any] = field(default_factory=dict)


def lanes(
    tools: Tools, known: tuple[Launch, ...] = (), history: RunHistory = NOTHING_KNOWN, *, check: bool = False
) -> tuple[LaneStatus, ...]:
    """Live containers first. `known`: launches of releases to compare with. Raises BackendError (7).

    `check`: a lane that is ready must also answer a short completion.
    """
    containers = tools.backend.containers()
    foreign = any(is_live(container) and not container.ours for container in containers)
    gpu = tools.gpu.held() if tools.gpu and foreign else None
    found = [container for container in containers if container.ours or _concerns_us(container, known, gpu)]
    found.sort(key=lambda container: (not is_live(container), container.name))

    def status(container: Container) -> LaneStatus:
        ours = container.ours
        if not ours:
            return foreign_status(container, tools, known, gpu)
        return lane_status(container, tools, known, history, check=check)

    return tuple(map(status, found))


def foreign_status(
    container: Container, tools: Tools, known: tuple[Launch, ...] = (), gpu: GpuHeld | None = None
) -> LaneStatus:
    """A foreign container: facts only. Lane and release are those it resembles."""
    launch = next((launch for launch in known if looks_like(container, launch)), None)
    held = f"; {gpu.sentence(container.id)}" if gpu and is_live(container) and _has_gpu(container, gpu) else ""
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
    container: Container,
    tools: Tools,
    known: tuple[Launch, ...] = (),
    history: RunHistory = NOTHING_KNOWN,
    *,
    check: bool = False,
) -> LaneStatus:
    """One of our containers; its log is read only if it does not answer."""
    named = release_of(container)
    launch = next((launch for launch in known if f"{launch.plan.lane}/{launch.release}" == named), None)
    asked = history.is_stopped_on_request(container.id, container.finished_at)
    due = history.is_expected_to_run(container.id, tools.backend.kind)
    seen = _seen(container, launch, tools, asked=asked, due=due)
    if seen.state == "ready":
        seen = _by_receipts(seen, container, history)
    if check and seen.state == "ready":
        seen = _by_liveness(seen, container, launch, tools)
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


def _by_receipts(seen: _Observation, container: Container, history: RunHistory) -> _Observation:
    """Degraded if its last launch found missing receipts (exit 9)."""
    run = next((run for run in reversed(history.runs) if run.container_id == container.id), None)
    if run is None or (run.exit or {}).get("tool") != ServiceError.exit_code:
        return seen
    unkept = [receipt["name"] for receipt in run.receipts if receipt.get("state") in UNKEPT]
    why = f"receipts missing from its boot: {'; '.join(map(str, unkept))}" if unkept else None
    return replace(seen, state="degraded", health={**seen.health, "why": why})


def _by_liveness(seen: _Observation, container: Container, launch: Launch | None, tools: Tools) -> _Observation:
    endpoint, model = endpoint_of(container, launch), seen.health.get("model")
    if endpoint is None or not isinstance(model, str):
        return seen
    found = check_liveness(tools.http, endpoint, model)
    facts = {**seen.health, "liveness": found.state, "why": found.why or None}
    return replace(seen, state="degraded" if found.state == "hung" else "ready", health=facts)


def _concerns_us(container: Container, known: tuple[Launch, ...], gpu: GpuHeld | None) -> bool:
    if any(container.name == launch.name or looks_like(container, launch) for launch in known):
        return True
    return is_live(container) and _has_gpu(container, gpu)


def _has_gpu(container: Container, gpu: GpuHeld | None) -> bool:
    return any(containers_on_gpu("all", (container,))) or (gpu is not None and container.id in gpu.containers)


def _drift(container: Container, launch: Launch | None, tools: Tools, history: RunHistory) -> tuple[Drift, ...]:
    """Containers that are kept under another name are compared with the journal only."""
    held = launch is not None and (is_live(container) or container.name == launch.name)
    of_recipe = drift(container, launch, tools.backend.image(launch.plan.image)) if launch and held else ()
    return (*of_recipe, *from_journal(container, tools.backend.kind, history))


def _since(container: Container) -> str | None:
    at = container.started_at if is_live(container) else container.finished_at or container.created_at
    return None if at is None else display_time(at).replace(" ", "T")


def _seen(container: Container, launch: Launch | None, tools: Tools, *, asked: bool, due: bool) -> _Observation:
    """`asked`: one of our commands stopped it. `due`: it runs according to the journal."""
    if container.state == "running":
        return _running(container, launch, tools)
    if container.state in {"paused", "restarting"}:
        state: LaneState = "degraded" if container.state == "paused" else "died"
        why = f"the container is {container.state}"
        return _Observation(state, None, {"why": why, **_ending(container), **_looping(container)})
    if container.started_at is None:
        return _Observation("failed" if container.error else "stopped", None, _ending(container))
    return _ended(container, diagnose_container(container, tools), asked=asked, due=due)


def _running(container: Container, launch: Launch | None, tools: Tools) -> _Observation:
    endpoint = endpoint_of(container, launch)
    answer = _presence(container, launch, tools, endpoint)
    facts = {**_answered(answer), "restarts": container.restart_count or None}
    if answer.state == "ready" and endpoint is not None:
        try:
            lives = is_alive(health(tools.http, endpoint), endpoint)
        except UnreachableError:
            lives = False
        why = None if lives else "/health does not return 200: the engine is dead or dying"
        return _Observation("ready" if lives else "degraded", Phase.SERVING, {**facts, "why": why})
    diagnosis = diagnose_container(container, tools)
    state: LaneState = "degraded" if diagnosis.state == "ready" else diagnosis.state
    facts = {**facts, "reason": diagnosis.reason, "why": answer.why, **_looping(container)}
    return _Observation("died" if container.restart_count >= LOOP else state, diagnosis.phase, facts)


def _presence(container: Container, launch: Launch | None, tools: Tools, endpoint: ServerEndpoint | None) -> Readiness:
    if endpoint is None:
        return Readiness("silent", "no host port leads to its engine")
    identity = boot_identity(container, endpoint, tools.backend)
    answer = check_presence(tools.http, endpoint, served_names(container, launch), container.began, identity.figures)
    if answer.state == "ready" and not is_plausible(answer, endpoint, identity):
        return replace(answer, state="other-server", why="it has not booted, but another server answers on its port")
    return exclude_other_servers(answer, container, endpoint, tools)


def _looping(container: Container) -> dict[str, Any]:
    if container.restart_count < LOOP:
        return {}
    why = f"its restart policy has started it {container.restart_count} times; stop the lane to end that"
    return {"reason": Reason.CRASH_LOOP.value, "why": why}


def _ended(container: Container, diagnosis: Diagnosis, *, asked: bool, due: bool) -> _Observation:
    served = diagnosis.phase is Phase.SERVING or any(phase is Phase.SERVING for phase, _ in diagnosis.phases)
    state: LaneState = "stopped"
    if is_failed(container):
        state = "failed"
    elif not asked and (has_died(container, diagnosis) or (due and diagnosis.state != "stopped")):
        state = "died" if served else "failed"
    return _Observation(state, diagnosis.phase, {**_ending(container), "reason": diagnosis.reason})


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
    """It serves, but differs from its recipe (exit 9); it is left alone."""

    def __init__(self, launch: Launch, differs: tuple[str, ...]) -> None:
        named = "\n".join(f"  {sentence}" for sentence in differs)
        super().__init__(
            f"{launch.ref} runs already as {launch.name}, but serves wrongly\n{named}",
            hint="it keeps running; to launch it anew, remove it first",
            suggest=(Action("down", "remove it", ("--remove",)), Action("up", "then launch it")),
        )
        self.differs = differs


def verify_serving(container: Container, launch: Launch, tools: Tools, history: RunHistory) -> tuple[str, ...]:
    """Check a serving lane as `status` does; raises ServesWronglyError. Returns differences from the journal."""
    seen = lane_status(container, tools, (launch,), history, check=True)
    differs = tuple(_differs(seen))
    if differs:
        raise ServesWronglyError(launch, differs)
    return tuple(difference.message for difference in seen.drift)


def _differs(seen: LaneStatus) -> Iterator[str]:
    if seen.state != "ready":
        why = seen.health.get("why")
        yield f"{seen.state}: {why}" if why else seen.state
    # A difference from the journal is only a notice.
    yield from (difference.message for difference in seen.drift if difference.against != "journal")


class SeveralLanesError(CommandLineError):
    """Without a REF, exactly one lane must be running."""

    def __init__(self, verb: str, containers: Iterable[Container], what: str = "several lanes are running") -> None:
        found = tuple(containers)
        super().__init__(
            f"{what}: {', '.join(map(describe_container, found))}",
            suggest=tuple(Action(verb, ref=ref_of(container)) for container in found),
        )


def choose_container(
    verb: str, containers: Iterable[Container], lane: str | None, release: str | None, *, stopped: bool = False
) -> Container | None:
    """The live container, else the one that ran last; failed ones only if there is no other.

    Without lane and release, the only live container; with `stopped`, else the only one that is stopped. None: no
    container fits.
    """
    ours = [container for container in containers if container.ours and _matches(container, lane, release)]
    # `v14+set` has an address of its own; `v14` is also that of `v14+set` while there is no other v14.
    ours = [container for container in ours if release_of(container) == f"{lane}/{release}"] or ours
    running = [container for container in ours if is_live(container)]
    if len(running) > 1:
        raise SeveralLanesError(verb, running)
    if running or (lane is None and not stopped):
        return running[0] if running else None
    candidates = [container for container in ours if not is_failed(container)] or ours
    if lane is None and len(candidates) > 1:
        raise SeveralLanesError(verb, candidates, "several lanes are stopped")
    return max(candidates, key=lambda container: container.finished_at or container.began, default=None)


def _matches(container: Container, lane: str | None, release: str | None) -> bool:
    if lane is None:
        return True
    if release is None:
        return container.labels.get(LABEL_LANE) == lane
    return f"{lane}/{release}" in (ref_of(container), release_of(container))
