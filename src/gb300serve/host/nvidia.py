"""Parsers for nvidia-smi and for the parameters of the driver."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gb300serve.core.text import MIB
from gb300serve.core.values import Missing

# `[N/A]`, `[Not Supported]`, `[Insufficient Permissions]`, `[Unknown Error]`, and `N/A` in older releases.
_NOTHING = re.compile(r"\[.*\]|N/A|")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def csv_rows(text: str) -> Iterator[dict[str, str]]:
    """Values by column name without its unit; missing values and empty rows are left out."""
    head, *lines = [line for line in text.splitlines() if line.strip()] or [""]
    names = [name.strip().partition(" [")[0] for name in head.split(",")]
    for line in lines:
        values = (value.strip() for value in line.split(",", len(names) - 1))
        if row := {name: value for name, value in zip(names, values, strict=False) if not _NOTHING.fullmatch(value)}:
            yield row


def number(value: str | None) -> float | None:
    """`143771 MiB` → 143771.0, `700.00 W` → 700.0."""
    match = _NUMBER.match(value or "")
    return float(match[0]) if match else None


def whole(value: str | None) -> int | None:
    """A number without a fraction, such as an index or a process id."""
    return int(value) if value and value.isdecimal() else None


def mebibytes(value: str | None) -> int | None:
    """`143771 MiB` → bytes."""
    size = number(value)
    return None if size is None else round(size) * MIB


GPU_STATE_FIELDS = (
    "index", "name", "uuid", "driver_version", "memory.total", "memory.reserved", "memory.used", "memory.free",
    "compute_cap", "power.limit", "power.max_limit", "power.draw", "clocks_event_reasons.active",
)  # fmt: skip
_REJECTED = re.compile(r'Field "([a-z_.]+)" is not a valid field to query')
# Names of fields before driver 535.
OLDER = {"clocks_event_reasons.active": "clocks_throttle_reasons.active"}

# nvmlClocksEventReason…, nvml.h. Idle, application clocks and display clocks cost no speed.
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
    """One GPU. `memory` is the total of nvidia-smi; `reserved` is the driver's part, which CUDA does not count."""

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
        """CUDA's total (H200: 143,771 - 615 MiB reserved = cuDeviceTotalMem)."""
        return None if self.memory is None or self.reserved is None else self.memory - self.reserved


def gpu_state_command(fields: tuple[str, ...] = GPU_STATE_FIELDS) -> tuple[str, ...]:
    """The nvidia-smi command."""
    return ("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv")


def without_rejected(fields: tuple[str, ...], error: str) -> tuple[str, ...] | None:
    """The fields without one that the driver rejects; None for any other error."""
    match = _REJECTED.search(error)
    if match is None or match[1] not in fields:
        return None
    place = fields.index(match[1])
    older = (OLDER[match[1]],) if match[1] in OLDER else ()
    return (*fields[:place], *older, *fields[place + 1 :])


def parse_gpu_states(text: str) -> tuple[GpuState, ...] | Missing:
    """The GPUs in the order of the output; GPUs without name or UUID are left out."""
    rows = tuple(csv_rows(text))
    gpus = tuple(_gpu(row) for row in rows if "name" in row and "uuid" in row)
    return gpus if gpus or not rows else Missing(f"nvidia-smi printed: {text.splitlines()[-1].strip()}")


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
    # Reported since driver 510; otherwise computed.
    reported = mebibytes(row.get("memory.reserved"))
    total, used, free = (mebibytes(row.get(f"memory.{part}")) for part in ("total", "used", "free"))
    if reported is not None or total is None or used is None or free is None:
        return reported
    return total - used - free


def _held_back(mask: str | None) -> tuple[str, ...] | None:
    if mask is None or not re.fullmatch(r"0x[0-9a-fA-F]+", mask):
        return None
    bits = int(mask, 16)
    return tuple(name for bit, name in _REASONS.items() if bits & bit)


# The name comes last: it is the only value that may hold a comma.
COMPUTE_APPS_COMMAND = ("nvidia-smi", "--query-compute-apps=pid,used_memory,gpu_uuid,process_name", "--format=csv")


@dataclass(frozen=True, slots=True)
class ComputeProcess:
    """`used` is bytes of the GPU's memory; `gpu` is its UUID."""

    pid: int
    name: str | None = None
    used: int | None = None
    gpu: str | None = None


def parse_compute_apps(text: str) -> tuple[ComputeProcess, ...] | Missing:
    """The compute processes."""
    rows = tuple(csv_rows(text))
    processes = tuple(
        ComputeProcess(pid, row.get("process_name"), mebibytes(row.get("used_gpu_memory")), row.get("gpu_uuid"))
        for row in rows
        if (pid := whole(row.get("pid"))) is not None
    )
    return processes if processes or not rows else Missing(f"nvidia-smi printed: {text.splitlines()[-1].strip()}")


_LISTED_GPU = re.compile(r"^GPU \d+: (?P<name>.+) \(UUID: (?P<uuid>GPU-[0-9a-f-]+)\)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Gpu:
    """`name` is the product's, such as `NVIDIA GB300`."""

    name: str
    uuid: str


def parse_gpu_list(text: str) -> tuple[Gpu, ...]:
    """The GPUs that the output lists, in its order."""
    return tuple(Gpu(match["name"], match["uuid"]) for match in _LISTED_GPU.finditer(text))


def gpus_named(gpus: tuple[Gpu, ...], name: str) -> tuple[Gpu, ...]:
    """Those whose product name has `name` as a word: `GB300` means `NVIDIA GB300`."""
    return tuple(gpu for gpu in gpus if name.casefold() in gpu.name.casefold().split())


MEMORY_MODE_PATH = "/proc/driver/nvidia/params"
CDMM = "driver"
_MODE = re.compile(r'^CoherentGPUMemoryMode: "?(\w*)"?$', re.MULTILINE)


def parse_memory_mode(text: str) -> str | Missing:
    """`driver`, `numa` or empty (not set)."""
    match = _MODE.search(text)
    return match[1] if match else Missing(f"{MEMORY_MODE_PATH} has no CoherentGPUMemoryMode: the driver is too old")
