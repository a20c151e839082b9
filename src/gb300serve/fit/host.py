"""Host memory: what a launch may hold of it, against what there is."""

from dataclasses import dataclass

from gb300serve.fit.model import HostPlan, Verdict

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
