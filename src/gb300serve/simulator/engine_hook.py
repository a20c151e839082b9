"""The hot-expert hook's own lines: armed at the start, then each layer's experts moved before memory is profiled."""

from gb300serve.fit.checkpoint import GIB, Checkpoint
from gb300serve.fit.model import MemoryPlan
from gb300serve.simulator.engine_settings import Settings
from gb300serve.simulator.engine_tape import EventTimeline

# GiB free in HBM and on the host, at the first layer and after the last, as a good boot showed them.
_HBM_FREE = (23.54, 23.08)
_HOST_FREE = (69.87, 12.61)


def arm(tape: EventTimeline, settings: Settings) -> None:
    """One line a process; nothing without the hook."""
    if settings.demand.variant is not None:
        tape.say("stderr", "PIN_HOT finder armed PIN_MODE=split")


def _layers(checkpoint: Checkpoint) -> list[int]:
    names = (parameter.name.split(".layers.")[1].partition(".")[0] for parameter in checkpoint.parameters)
    return sorted(set(map(int, names)))


def _moved_layers(memory: MemoryPlan) -> set[int]:
    return {int(parameter.name.split(".layers.")[1].partition(".")[0]) for parameter in memory.offload.moved}


def _free(share: float) -> str:
    hbm, host = (start + (end - start) * share for start, end in (_HBM_FREE, _HOST_FREE))
    return f"hbm_free={hbm:.2f}GiB host_avail={host:.2f}GiB"


def rehome(tape: EventTimeline, settings: Settings, memory: MemoryPlan) -> None:
    """Layers that stay in HBM first, then those that were moved; nothing without the hook."""
    name = settings.demand.variant
    if name is None:
        return
    checkpoint, patch = settings.checkpoint, settings.checkpoint.variants[name]
    layers, moved = _layers(checkpoint), _moved_layers(memory)
    order = [layer for layer in layers if layer not in moved] + [layer for layer in layers if layer in moved]
    kept = len(layers) - len(moved)
    tape.enter("offloading")
    tape.say(
        "stderr",
        f"PIN_HOT rehome order n={len(layers)} hbm_layers={kept} uva_layers={len(moved)} strategy=hbm-then-uva",
    )
    cold = patch.rows - patch.hot_rows
    for done, layer in enumerate(order):
        rows = f"hot_w1=({patch.hot_rows}, 4608, 2560) cold_w1=({cold}, 4608, 2560)"
        module = f"language_model.model.layers.{layer}.ffn.experts uva={layer in moved}"
        tape.say("stderr", f"PIN_HOT rehome layer={layer} name={module} {rows} {_free(done / len(order))}")
        tape.wait(patch.seconds / len(order))
    experts = sum(parameter.bytes for parameter in checkpoint.parameters) / GIB
    hbm, pinned = experts * patch.hot_rows / patch.rows, experts * cold / patch.rows
    expected = f"(expect ~{hbm:.1f} / ~{pinned:.1f})"
    residency = f"HBM_expert={hbm:.2f}GiB pinned_expert={pinned:.2f}GiB"
    tape.say("stderr", f"PIN_HOT rehome done layers={len(layers)} {residency} {_free(1.0)} {expected}")
    tape.say("stderr", "PIN_HOT finalize kernel warmed")
