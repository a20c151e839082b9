"""The two memories of a machine: the GPU by product, and the host (Grace) with what a launch pins there."""

from dataclasses import dataclass
from typing import Literal

from gb300serve.fit.checkpoint import GIB, Checkpoint, Residency, Variant
from gb300serve.fit.request import MemoryRequest, OffloadResult, rounded_up

Verdict = Literal["fits", "short", "refused", "unknown"]


@dataclass(frozen=True, slots=True)
class Hbm:
    """The GPU's memory: the total that CUDA reports and utilization multiplies, and the size that nvidia-smi shows."""

    total_gib: float
    visible_gib: float | None = None
    name: str = "the GPU"
    basis: str = "measured"


# nvidia-smi shows 256,703 MiB, CUDA reports 268,235,309,056 bytes. The 288 GB of the data sheet are not used.
GB300 = Hbm(268_235_309_056 / GIB, 256_703 / 1024, "GB300")
H200 = Hbm(150_109_880_320 / GIB, 143_771 / 1024, "H200")
# A GB10 is absent: CPU and GPU share one memory there, so no total is fixed.
KNOWN_GPUS = (GB300, H200)
# Logs print the total with one to four decimals; two products differ by more.
SAME_TOTAL_GIB = 0.1


def gpu_named(name: str) -> Hbm | None:
    """The known GPU whose name is a word of `name`: `NVIDIA H200` is an H200."""
    words = name.upper().replace("-", " ").split()
    return next((known for known in KNOWN_GPUS if known.name in words), None)


def gpu_with_total(total_gib: float, name: str | None = None, basis: str = "stated") -> Hbm:
    """The GPU with this total of CUDA: a known one with its exact figures, else another."""
    known = next((gpu for gpu in KNOWN_GPUS if is_same_total(gpu.total_gib, total_gib)), None)
    return known or Hbm(total_gib, None, name or f"a GPU with {total_gib:.1f} GiB", basis)


def is_same_total(one: float, other: float) -> bool:
    """Whether two totals are those of one GPU."""
    return abs(one - other) < SAME_TOTAL_GIB


@dataclass(frozen=True, slots=True)
class HbmPlan:
    """The GPU side. `usable_gib` is what utilization allows; None means that no comparable boot was measured."""

    visible_gib: float | None
    total_gib: float
    usable_gib: float
    weights_gib: float
    overhead_gib: float | None
    kv_cache_gib: float | None


# The CUDA context takes this much before any weight (measured on an H200): nothing can use it.
CONTEXT_GIB = 0.51


@dataclass(frozen=True, slots=True)
class HostPlan:
    """Host memory in GiB. Pinned tensors occupy a power of two each: measured exact on vLLM's allocator.

    `least_gib` is the sum without rounding, `resident_gib` the expected memory while the engine serves, and `peak_gib`
    the expected memory while it loads. With a hook, the peak holds the offloaded parameters and the experts that
    replace them.
    """

    requested_gib: float
    offloaded_gib: float
    engram_gib: float
    least_gib: float
    resident_gib: float
    peak_gib: float
    basis: str
    needed_gib: float | None = None
    """MemAvailable that a hook needs before the launch; None without a hook."""
    margin_gib: float = 0.0
    """By how much `needed_gib` differs between boots."""
    floor_gib: float = 0.0
    """The hook aborts if less than this is left while it moves experts."""
    measured_left_gib: float | None = None
    """MemAvailable that a boot of this launch logged at the end of re-homing."""
    measured_shared_gb: float | None = None
    """Shared memory (GB) of a boot with exactly this request, as its operators' tools printed it."""

    def left_gib(self, available_gib: float) -> float:
        """MemAvailable at the peak: for a hook, at the end of re-homing."""
        if self.needed_gib is None:
            return available_gib - self.peak_gib
        return available_gib - self.needed_gib + self.floor_gib


# Operators of Stations keep at least 20 GiB free.
FREE_GIB = 20.0


@dataclass(frozen=True, slots=True)
class GraceMemory:
    """MemAvailable of the host (Grace) in GiB, measured or assumed, and the basis of the figure."""

    available_gib: float
    basis: str


STATION = GraceMemory(466.0, "assumed: a Station that runs nothing else, after its page cache was dropped")


def host_verdict(host: HostPlan, grace: GraceMemory = STATION) -> Verdict:
    """A hook states the memory that it needs. Otherwise `short` means that less than FREE_GIB would remain."""
    if host.needed_gib is not None:
        return "refused" if grace.available_gib < host.needed_gib else "fits"
    if host.peak_gib > grace.available_gib:
        return "refused"
    return "short" if host.resident_gib > grace.available_gib - FREE_GIB else "fits"


def is_close_to_abort(host: HostPlan, grace: GraceMemory) -> bool:
    """Whether the hook may abort: the memory is enough, but by less than boots differ."""
    return host.needed_gib is not None and 0 <= grace.available_gib - host.needed_gib < host.margin_gib


def hook_of(checkpoint: Checkpoint, request: MemoryRequest) -> Variant | None:
    """The known hook of this launch."""
    return checkpoint.variants.get(request.variant) if request.variant else None


def residency_of(checkpoint: Checkpoint, request: MemoryRequest) -> Residency | None:
    """Where experts are after loading, if a hook fixes that: as the recipe states it, else as known for the hook."""
    hook = hook_of(checkpoint, request)
    return checkpoint.residency or (hook.residency if hook else None)


def host_plan(checkpoint: Checkpoint, request: MemoryRequest, moved: OffloadResult) -> HostPlan:
    """The host memory of a launch that offloads `moved`."""
    tables = checkpoint.host_tables if request.host_tables else ()
    sizes = [size for table in tables for size in table.tensors]
    held = sum(map(rounded_up, sizes)) if request.rounds_tables else sum(sizes)
    positional = moved.rounded_bytes if request.rounds_offload else moved.moved_bytes
    residency, hook, stated = residency_of(checkpoint, request), hook_of(checkpoint, request), checkpoint.host_need
    lasting, added = positional / GIB, 0.0
    if residency is not None:
        pinned = hook.limits.pinned_gib if hook and checkpoint.residency is None else residency.grace_expert_gib
        lasting = added = pinned
    least = residency.grace_expert_gib if residency else moved.moved_gib
    peak = held / GIB + positional / GIB + added
    needed, floor, margin, basis = None, 0.0, 0.0, "computed: each pinned tensor rounded up to a power of two"
    if residency is not None and hook is not None:
        floor, margin, basis = hook.limits.host_floor_gib, hook.limits.margin_gib, hook.limits.basis
        needed = peak + hook.limits.engine(request.engine_version) + floor
    if stated is not None:
        needed, margin, basis = stated.needed_gib, 0.0, f"the recipe: {stated.basis}"
    return HostPlan(
        requested_gib=request.cpu_offload_gb,
        offloaded_gib=moved.moved_gib,
        engram_gib=sum(sizes) / GIB,
        least_gib=least + sum(sizes) / GIB,
        resident_gib=held / GIB + lasting,
        peak_gib=peak,
        basis=basis,
        needed_gib=needed,
        margin_gib=margin,
        floor_gib=floor,
        measured_left_gib=stated.left_gib if stated else None,
    )
