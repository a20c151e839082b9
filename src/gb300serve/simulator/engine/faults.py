"""Rehearsals of what goes wrong: a fault cuts the boot's script at a place and says what comes instead. Data, pure.

Add one: a row in FAULTS. README lists them from here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from gb300serve.boot.phases import Phase
from gb300serve.core.values import EngineName
from gb300serve.simulator.engine.script import API, CORE, Bind, Enter, Event, EventTimeline, Script, Serve
from gb300serve.simulator.engine.settings import Settings, SurroundingsError
from gb300serve.simulator.engine.sglang.deaths import ENDINGS
from gb300serve.simulator.engine.vllm.deaths import (
    gpu_failed,
    gpu_memory_in_use,
    gpu_out_of_memory,
    hook_aborted,
    port_taken,
)

Ending = Callable[[EventTimeline, Settings], None]
BIND, SERVE = "bind", "serve"


@dataclass(frozen=True, slots=True)
class Fault:
    """One rehearsal.

    `at` is a phase, or `bind` or `serve`, and `share` how far into it the boot is cut (None: it is not cut); `ending`
    writes what comes instead. `seconds` changes what the boot starts from, `hook` False leaves the hook out, `untuned`
    empties the tuning cache, `foreign` makes the cache file one of another environment, `drops` are options that never
    reach the engine. `hangs`: from its place on nothing computes. `patched`: pinned files are others in the container.
    `of_hook`: it is about a hook, which the launch must have.
    """

    summary: str
    at: str | None = None
    share: float = 0.0
    ending: Ending | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    hook: bool = True
    untuned: bool = False
    foreign: bool = False
    drops: tuple[str, ...] = ()
    hangs: bool = False
    patched: bool = False
    of_hook: bool = False


def _killed(tape: EventTimeline, _settings: Settings) -> None:
    tape.exit(137)


def _heartbeats(tape: EventTimeline, _settings: Settings) -> None:
    text = (
        "No available shared memory broadcast block found in 60 seconds. This typically happens when some processes "
        "are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization)."
    )
    tape.heartbeat(60.0, CORE, "shm_broadcast.py:801", text)


def _hook_line(tape: EventTimeline, _settings: Settings) -> None:
    tape.say("stderr", "PIN_HOT hook FAILED to install: No module named 'pin_hot_experts_hook'")


def _engine_dies(tape: EventTimeline, _settings: Settings) -> None:
    tape.wait(60.0)
    tape.log(
        API, "core_client.py:701", "[shutdown] MPClient: engine core exited unexpectedly; starting cleanup", "ERROR"
    )
    frames = (
        "vllm/v1/engine/async_llm.py:849:output_handler:outputs = await engine_core.get_output_async()",
        "vllm/v1/engine/core_client.py:1235:get_output_async:raise self._format_exception(outputs) from None",
    )
    dead = (
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. "
        "See stack trace (above) for the root cause."
    )
    tape.log(API, "async_llm.py:906", "AsyncLLM output_handler failed.", "ERROR")
    tape.traceback(API, frames, dead)
    tape.uvicorn("Shutting down")
    tape.uvicorn("Finished server process [1]")
    # The engine's own surprise: its death ends the server with 0.
    tape.exit(0)


def _dies_in(phase: Phase) -> Fault:
    """A phase that the simulated boot passes by begins with the death."""
    passed_by = {Phase.OFFLOADING: ("profiling", 0.0), Phase.COMPILING: ("profiling", 0.2)}
    at, share = passed_by.get(phase, (phase.value, 0.5))
    return Fault(f"the GPU fails in the phase {phase}", at, share, lambda tape, _: gpu_failed(tape, phase))


FAULTS: dict[str, Fault] = {
    "cache-miss": Fault("the kernel-tuning cache is empty: 74 minutes of tuning", untuned=True),
    "cache-foreign": Fault(
        "the tuning cache was made in another environment: it is ignored, and nothing is saved", foreign=True
    ),
    "stall": Fault("loading weights hangs; only heartbeats come", "loading-weights", 0.5, _heartbeats, hangs=True),
    "tuning-hangs": Fault(
        "kernel tuning stops in the middle, silent and idle",
        "tuning-kernels",
        0.5,
        _heartbeats,
        untuned=True,
        hangs=True,
    ),
    "slow-disk": Fault("weights on a network share: half an hour of loading", seconds={"loading-weights": 1846.0}),
    "host-oom": Fault(
        "the kernel kills the engine while weights load: the log just stops", "loading-weights", 0.6, _killed
    ),
    "gpu-oom": Fault("the weights do not fit the GPU", "loading-weights", 0.1, lambda tape, _: gpu_out_of_memory(tape)),
    "gpu-busy": Fault(
        "another process holds most of the GPU",
        "loading-weights",
        0.01,
        lambda tape, settings: gpu_memory_in_use(tape, settings.demand.gpu_memory_utilization),
    ),
    "port-taken": Fault("another program listens on the port", BIND, 0.0, lambda tape, _: port_taken(tape)),
    "hook-failed": Fault("the hook is not installed, and the engine serves without it", hook=False, of_hook=True),
    "argument-lost": Fault(
        "the prefill threshold is lost between the command and the engine", drops=("long_prefill_token_threshold",)
    ),
    "patch-differs": Fault("the files over the image are not those that the recipe pins", patched=True),
    "hook-aborted": Fault(
        "the hook stops the boot for lack of host memory",
        "profiling",
        0.3,
        lambda tape, _: hook_aborted(tape),
        of_hook=True,
    ),
    "crash-after-ready": Fault(
        "the engine process dies a minute after READY; the exit code is 0", SERVE, 0.0, _engine_dies
    ),
    **{f"dies-in-{phase}": _dies_in(phase) for phase in Phase},
}


# The endings of engines other than vLLM, whose endings are those of FAULTS.
_ENDINGS: Mapping[EngineName, Mapping[str, Ending]] = {"sglang": ENDINGS}
# Faults without an ending that have the same effect on every engine.
_SHARED = ("slow-disk", "patch-differs")


def faults_of(engine: EngineName) -> tuple[str, ...]:
    """The faults that this engine can rehearse."""
    endings = _ENDINGS.get(engine)
    return tuple(FAULTS) if endings is None else (*endings, *_SHARED)


def fault(settings: Settings) -> Fault | None:
    """The fault asked for; SurroundingsError lists the names when there is none of this name."""
    name, engine = settings.surroundings.fault, settings.surroundings.engine
    if name is None:
        return None
    names = faults_of(engine)
    if name in FAULTS and name not in names:
        raise SurroundingsError(f"no rehearsal of {name} for {engine}; there are {', '.join(names)}")
    if name not in FAULTS:
        raise SurroundingsError(f"no fault is called {name!r}; there are {', '.join(FAULTS)}")
    return FAULTS[name]


def prepared(settings: Settings) -> Settings:
    """The settings that a fault starts from."""
    found = fault(settings)
    if found is None:
        return settings
    surroundings = settings.surroundings
    hooks = () if found.hook else tuple(patch.env for patch in settings.checkpoint.variants.values())
    env = {name: value for name, value in (surroundings.env or {}).items() if name not in hooks}
    seconds = {**(surroundings.phase_seconds or {}), **found.seconds}
    options = {name: value for name, value in settings.options.items() if name not in found.drops}
    return replace(settings, options=options, surroundings=replace(surroundings, env=env, phase_seconds=seconds))


def _place(script: Script, found: Fault) -> tuple[int, float] | None:
    """Index of the first event that no longer happens, and the time of the cut; None when the boot never got there."""
    kind = {BIND: Bind, SERVE: Serve}.get(found.at or "")
    if kind is not None:
        places = [(index, event.at) for index, event in enumerate(script) if isinstance(event, kind)]
        index, at = places[0] if places else (-1, 0.0)
        # A server that has started keeps serving until the ending comes.
        return (index + (kind is Serve), at) if places else None
    phases = [event for event in script if isinstance(event, Enter)]
    begun = next((event for event in phases if event.phase == found.at), None)
    if begun is None:
        return None
    after = [event.at for event in phases if event.at > begun.at]
    cut = begun.at + found.share * ((after[0] if after else script[-1].at) - begun.at)
    return next(index for index, event in enumerate(script) if event.at >= cut and event is not begun), cut


def _ending(found: Fault, settings: Settings) -> Ending | None:
    """In the words of the engine."""
    endings = _ENDINGS.get(settings.surroundings.engine)
    return found.ending if endings is None else endings.get(settings.surroundings.fault or "")


def afflicted(script: Script, settings: Settings, started: float) -> Script:
    """The script with the fault in it; a boot that dies before the fault's place dies as it would."""
    found = fault(settings)
    if found is None:
        return script
    events: list[Event] = list(script)
    at = 0.0
    if not found.hook:
        tape = EventTimeline(started)
        _hook_line(tape, settings)
        events = [*events[:1], *tape.script, *events[1:]]
    place = _place(tuple(events), found) if found.at else None
    ending = _ending(found, settings)
    if place is None or ending is None:
        return tuple(events)
    index, at = place
    tape = EventTimeline(started)
    tape.until(at)
    ending(tape, settings)
    return (*events[:index], *tape.script)
