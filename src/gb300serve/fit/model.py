"""The answer of the memory arithmetic, in the shape that `fit` shows it. All sizes in GiB."""

from dataclasses import dataclass
from typing import Literal

from gb300serve.fit.checkpoint import GIB, Basis
from gb300serve.fit.request import OffloadResult

Verdict = Literal["fits", "short", "refused", "unknown"]


@dataclass(frozen=True, slots=True)
class Hbm:
    """The GPU's memory: what nvidia-smi shows, and the total that CUDA reports and utilisation multiplies."""

    visible_gib: float
    total_gib: float


# 256,703 MiB by nvidia-smi; CUDA reports 268,235,309,056 bytes. The 288 GB of the data sheet never enter.
GB300 = Hbm(visible_gib=256_703 / 1024, total_gib=268_235_309_056 / GIB)


@dataclass(frozen=True, slots=True)
class HbmPlan:
    """The GPU's side. `usable_gib` is what utilisation allows; None where nothing comparable was measured."""

    visible_gib: float
    usable_gib: float
    weights_gib: float
    overhead_gib: float | None
    kv_cache_gib: float | None


@dataclass(frozen=True, slots=True)
class HostPlan:
    """The host's side: asked of the engine, really moved, the tables, and what both may hold in memory.

    `resident_gib` is the exact sum, `resident_bound_gib` what it becomes when every pinned tensor is rounded up to a
    power of two.
    """

    asked_gib: float
    offloaded_gib: float
    engram_gib: float
    resident_gib: float
    resident_bound_gib: float
    available_gib: float | None = None
    measured_shared_gb: float | None = None
    """Shared memory that a boot of exactly this held, as its owners' tools printed it."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The answer for one launch. Figures are None where nothing comparable was measured."""

    verdict: Verdict
    hbm: HbmPlan
    host: HostPlan
    offload: OffloadResult
    max_model_len: int
    needed_gib: float
    """KV cache that one request of `max_model_len` needs."""
    kv_cache_tokens: int | None
    concurrency_at_max_len: float | None
    estimated_max_model_len: int | None
    """The longest context that would fit, when this one does not."""
    weights_fit: bool
    """False: the engine runs out of memory while it creates its weights."""
    basis: Basis
    boots: tuple[str, ...]
    """The measured boots behind the answer, by name."""


# The owners want at least 20 GiB free before a launch.
FREE_GIB = 20.0
# All experts and Engram together are 442 GiB: that boot ended with 486 GB (453 GiB) of shared memory, killed.
NEVER_HELD_GIB = 440.0


@dataclass(frozen=True, slots=True)
class Grace:
    """What MemAvailable says, or is taken to say, in GiB, and on what that stands."""

    available_gib: float
    basis: str


STATION = Grace(494.5, "assumed: all of a Station's Grace memory, nothing else running")


def host_verdict(host: HostPlan, grace: Grace = STATION) -> Verdict:
    """`short` where rounded-up allocations would leave less than the owners want free."""
    if host.resident_gib > min(grace.available_gib, NEVER_HELD_GIB):
        return "refused"
    return "short" if host.resident_bound_gib > grace.available_gib - FREE_GIB else "fits"
