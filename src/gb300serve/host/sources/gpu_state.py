"""`nvidia-smi --query-gpu`: the GPUs by name and UUID, their memory, power and what holds their clocks back."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gb300serve.host.missing import Missing
from gb300serve.host.sources.nvidia_csv import mebibytes, number, rows, whole

FIELDS = (
    "index", "name", "uuid", "driver_version", "memory.total", "memory.reserved", "memory.used", "memory.free",
    "compute_cap", "power.limit", "power.max_limit", "power.draw", "clocks_event_reasons.active",
)  # fmt: skip
_REJECTED = re.compile(r'Field "([a-z_.]+)" is not a valid field to query')
# What an older driver (before 535) calls a field.
OLDER = {"clocks_event_reasons.active": "clocks_throttle_reasons.active"}

# nvmlClocksEventReason…, nvml.h. Idle, an application's own clocks and the display's are no loss.
_REASONS = {
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}


@dataclass(frozen=True, slots=True)
class GpuState:
    """One GPU. `memory` is what nvidia-smi shows; `reserved` of it is the driver's, and not in CUDA's total."""

    name: str
    uuid: str
    index: int | None = None
    driver: str | None = None
    memory: int | None = None
    reserved: int | None = None
    used: int | None = None
    compute_capability: str | None = None
    power_limit: float | None = None
    power_limit_max: float | None = None
    power_draw: float | None = None
    clocks_held_back: tuple[str, ...] | None = None

    @property
    def cuda_memory(self) -> int | None:
        """The total that CUDA reports, which utilisation multiplies.

        On an H200 143,771 MiB less 615 MiB reserved is what cuDeviceTotalMem says, to a mebibyte.
        """
        return None if self.memory is None or self.reserved is None else self.memory - self.reserved


def command(fields: tuple[str, ...] = FIELDS) -> tuple[str, ...]:
    """The words to run."""
    return ("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv")


def without_rejected(fields: tuple[str, ...], said: str) -> tuple[str, ...] | None:
    """The fields to ask for instead, when this driver does not know one; None when it complains of something else."""
    found = _REJECTED.search(said)
    if found is None or found[1] not in fields:
        return None
    place = fields.index(found[1])
    older = (OLDER[found[1]],) if found[1] in OLDER else ()
    return (*fields[:place], *older, *fields[place + 1 :])


def parse(text: str) -> tuple[GpuState, ...] | Missing:
    """The GPUs in the order of the output; one without name or UUID cannot be spoken of."""
    found = tuple(rows(text))
    if found and not any("name" in row and "uuid" in row for row in found):
        return Missing(f"nvidia-smi said: {text.splitlines()[-1].strip()}")
    return tuple(_gpu(row) for row in found if "name" in row and "uuid" in row)


def _gpu(row: Mapping[str, str]) -> GpuState:
    reasons = row.get("clocks_event_reasons.active") or row.get("clocks_throttle_reasons.active")
    return GpuState(
        name=row["name"],
        uuid=row["uuid"],
        index=whole(row.get("index")),
        driver=row.get("driver_version"),
        memory=mebibytes(row.get("memory.total")),
        reserved=_reserved(row),
        used=mebibytes(row.get("memory.used")),
        compute_capability=row.get("compute_cap"),
        power_limit=number(row.get("power.limit")),
        power_limit_max=number(row.get("power.max_limit")),
        power_draw=number(row.get("power.draw")),
        clocks_held_back=_held_back(reasons),
    )


def _reserved(row: Mapping[str, str]) -> int | None:
    """Said since driver 510; else what is neither used nor free."""
    said = mebibytes(row.get("memory.reserved"))
    total, used, free = (mebibytes(row.get(f"memory.{part}")) for part in ("total", "used", "free"))
    if said is not None or total is None or used is None or free is None:
        return said
    return total - used - free


def _held_back(mask: str | None) -> tuple[str, ...] | None:
    if mask is None or not re.fullmatch(r"0x[0-9a-fA-F]+", mask):
        return None
    bits = int(mask, 16)
    return tuple(name for bit, name in _REASONS.items() if bits & bit)
