"""The memory plan of a launch: GPU side, host side, verdict. All sizes in GiB."""

from dataclasses import dataclass
from typing import Literal

from gb300serve.fit.checkpoint import GIB, Basis
from gb300serve.fit.request import OffloadResult

Verdict = Literal["fits", "short", "refused", "unknown"]


@dataclass(frozen=True, slots=True)
class Hbm:
    """The GPU's memory: the size that nvidia-smi shows, and the total that CUDA reports and utilization multiplies."""

    visible_gib: float
    total_gib: float


# nvidia-smi shows 256,703 MiB, CUDA reports 268,235,309,056 bytes. The 288 GB of the data sheet are not used.
GB300 = Hbm(visible_gib=256_703 / 1024, total_gib=268_235_309_056 / GIB)


@dataclass(frozen=True, slots=True)
class HbmPlan:
    """The GPU side. `usable_gib` is what utilization allows; None means that no comparable boot was measured."""

    visible_gib: float
    usable_gib: float
    weights_gib: float
    overhead_gib: float | None
    kv_cache_gib: float | None


@dataclass(frozen=True, slots=True)
class HostPlan:
    """The host side: requested and actual offload, the tables (Engram), and the sum of actual offload and tables.

    `resident_bound_gib` is that sum if every pinned tensor is rounded up to a power of two.
    """

    requested_gib: float
    offloaded_gib: float
    engram_gib: float
    resident_gib: float
    resident_bound_gib: float
    available_gib: float | None = None
    measured_shared_gb: float | None = None
    """Shared memory (GB) of a boot with exactly this request, as its operators' tools printed it."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The plan of one launch. Figures are None if no comparable boot was measured."""

    verdict: Verdict
    hbm: HbmPlan
    host: HostPlan
    offload: OffloadResult
    max_model_len: int
    needed_gib: float
    """KV cache that one request of `max_model_len` tokens needs."""
    kv_cache_tokens: int | None
    concurrency_at_max_len: float | None
    estimated_max_model_len: int | None
    """The longest context that fits, if `max_model_len` does not."""
    weights_fit: bool
    """False: the engine runs out of memory while it creates its weights."""
    basis: Basis
    boots: tuple[str, ...]
    """Names of the measured boots that the plan is based on."""


# Operators of Stations keep at least 20 GiB free.
FREE_GIB = 20.0
# All experts and Engram are 442 GiB. That boot was killed when it held 486 GB (453 GiB) of shared memory.
NEVER_HELD_GIB = 440.0


@dataclass(frozen=True, slots=True)
class GraceMemory:
    """MemAvailable of the host (Grace) in GiB, measured or assumed, and the basis of the figure."""

    available_gib: float
    basis: str


STATION = GraceMemory(494.5, "assumed: all of a Station's Grace memory, nothing else running")


def host_verdict(host: HostPlan, grace: GraceMemory = STATION) -> Verdict:
    """`short` if rounded-up allocations would leave less than FREE_GIB."""
    if host.resident_gib > min(grace.available_gib, NEVER_HELD_GIB):
        return "refused"
    return "short" if host.resident_bound_gib > grace.available_gib - FREE_GIB else "fits"
