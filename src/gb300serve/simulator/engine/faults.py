"""The faults that can be rehearsed: where a boot goes wrong and what it starts from. Data, pure.

To add a fault, add a row to FAULTS and, where the engine dies of it, its log lines to the engine's ENDINGS. The table
in guides/simulator.md is written from here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gb300serve.boot.phases import Phase
from gb300serve.simulator.engine.script import Bind, Enter, Script, Serve

BIND, SERVE = "bind", "serve"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. The engine's ENDINGS hold what it prints from there on."""

    summary: str
    at: str | None = None
    """Where the boot is cut: a phase, `bind` or `serve`; None: it is not cut."""
    share: float = 0.0
    seconds: Mapping[str, float] = field(default_factory=dict)
    hook: bool = True
    """False: the hook is not installed."""
    untuned: bool = False
    foreign: bool = False
    """The tuning cache was made in another environment."""
    drops: tuple[str, ...] = ()
    """Options that never reach the engine."""
    hangs: bool = False
    """Nothing computes from there on."""
    patched: bool = False
    """The pinned files have other content in the container."""
    needs_hook: bool = False


def _dies_in(phase: Phase) -> Fault:
    # A simulated boot without the hook never enters `offloading`, and no simulated boot enters `compiling`.
    skipped = {Phase.OFFLOADING: ("profiling", 0.0), Phase.COMPILING: ("profiling", 0.2)}
    return Fault(f"the GPU fails in the phase {phase}", *skipped.get(phase, (phase.value, 0.5)))


FAULTS: dict[str, Fault] = {
    "cache-miss": Fault("the kernel-tuning cache is empty: 74 minutes of tuning", untuned=True),
    "cache-foreign": Fault(
        "the tuning cache was made in another environment: it is ignored, and nothing is saved", foreign=True
    ),
    "stall": Fault("loading weights hangs; only heartbeats come", "loading-weights", 0.5, hangs=True),
    "tuning-hangs": Fault(
        "kernel tuning stops in the middle, silent and idle", "tuning-kernels", 0.5, untuned=True, hangs=True
    ),
    "slow-disk": Fault("weights on a network share: half an hour of loading", seconds={"loading-weights": 1846.0}),
    "host-oom": Fault("the kernel kills the engine while weights load: the log just stops", "loading-weights", 0.6),
    "gpu-oom": Fault("the weights do not fit the GPU", "loading-weights", 0.1),
    "gpu-busy": Fault("another process holds most of the GPU", "loading-weights", 0.01),
    "port-taken": Fault("another program listens on the port", BIND),
    "hook-failed": Fault("the hook is not installed, and the engine serves without it", hook=False, needs_hook=True),
    "argument-lost": Fault(
        "the prefill threshold is lost between the command and the engine", drops=("long_prefill_token_threshold",)
    ),
    "patch-differs": Fault("the files over the image are not those that the recipe pins", patched=True),
    "hook-aborted": Fault("the hook stops the boot for lack of host memory", "profiling", 0.3, needs_hook=True),
    "crash-after-ready": Fault("the engine process dies a minute after READY; the exit code is 0", SERVE),
    **{f"dies-in-{phase}": _dies_in(phase) for phase in Phase},
}


def find_cut(script: Script, fault: Fault) -> tuple[int, float] | None:
    """Index of the first event that no longer happens, and the time of the cut; None if the boot never gets there."""
    kind = {BIND: Bind, SERVE: Serve}.get(fault.at or "")
    if kind is not None:
        places = [(index, event.at) for index, event in enumerate(script) if isinstance(event, kind)]
        # A server that has started keeps serving until the ending comes.
        return (places[0][0] + (kind is Serve), places[0][1]) if places else None
    phases = [event for event in script if isinstance(event, Enter)]
    begun = next((event for event in phases if event.phase == fault.at), None)
    if begun is None:
        return None
    end = next((event.at for event in phases if event.at > begun.at), script[-1].at)
    cut = begun.at + fault.share * (end - begun.at)
    return next(index for index, event in enumerate(script) if event.at >= cut and event is not begun), cut
