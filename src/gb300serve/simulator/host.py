"""The host of the simulated Station: its hardware as the host checks read it, and its kernel-tuning caches."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gb300serve.fit.checkpoint import known_checkpoints
from gb300serve.host.facts import ListeningSocket
from gb300serve.host.linux import UNLIMITED, Limit
from gb300serve.host.missing import Missing
from gb300serve.simulator.engine.settings import DEFAULT_VERSION
from gb300serve.simulator.engine.tuning import measured_caches, store_configs

GB300_UUID = "GPU-00000000-0000-4000-8000-000000000300"
DISPLAY_UUID = "GPU-00000000-0000-4000-8000-000000004000"

# 256,703 MiB visible and 268,235,309,056 bytes for CUDA, idle. The display GPU is listed first.
_GPUS = f"""\
index, name, uuid, driver_version, memory.total [MiB], memory.reserved [MiB], memory.used [MiB], compute_cap, \
power.limit [W], power.max_limit [W], power.draw [W], clocks_event_reasons.active, mig.mode.current
0, NVIDIA RTX PRO 4000 Blackwell SFF Edition, {DISPLAY_UUID}, 595.84, 24467 MiB, 403 MiB, 41 MiB, 12.0, \
70.00 W, 70.00 W, 9.00 W, 0x0000000000000001, [N/A]
1, NVIDIA GB300, {GB300_UUID}, 595.84, 256703 MiB, 894 MiB, 0 MiB, 10.3, \
1300.00 W, 1300.00 W, 160.00 W, 0x0000000000000001, Disabled
"""
_PROCESSES = "pid, process_name, used_gpu_memory [MiB], gpu_uuid\n"
# 494.5 GiB of Grace memory, of which the owners measured 466 GiB available before a launch.
_FILES = {
    "/proc/driver/nvidia/params": 'CoherentGPUMemoryMode: "driver"\n',
    "/proc/meminfo": "MemTotal: 518520832 kB\nMemAvailable: 488636416 kB\nCached: 4194304 kB\n",
    "/sys/devices/system/node/node0/cpulist": "0-71\n",
}
INFO: Mapping[str, Any] = {
    "ServerVersion": "29.1.3",
    "Architecture": "aarch64",
    "Runtimes": {"nvidia": {}, "runc": {}},
    "DefaultRuntime": "runc",
    "MemTotal": 518520832 * 1024,
}
_FILES_OF_PLANS = Missing("the simulated Station has every file that a plan names", asked=False)


class StationMachine:
    """Implements `host.ports.Machine`. Its ports are those of this machine, read by `heard`."""

    def __init__(self, heard: Callable[[int], ListeningSocket | Missing | None]) -> None:
        self._heard = heard

    def output(self, argv: tuple[str, ...]) -> str | Missing:
        command = " ".join(argv)
        if "--query-gpu=" in command:
            return _GPUS
        return _PROCESSES if "--query-compute-apps=" in command else _FILES_OF_PLANS

    def read(self, path: str) -> str | Missing:
        return _FILES.get(path, _FILES_OF_PLANS)

    def begin(self, path: str, count: int) -> Missing:  # noqa: ARG002 - part of the protocol, here and below
        return _FILES_OF_PLANS

    def entry(self, path: str) -> Missing:  # noqa: ARG002
        return _FILES_OF_PLANS

    space = sha256 = entry

    def names(self, directory: str) -> tuple[str, ...] | Missing:
        return ("node0",) if directory == "/sys/devices/system/node" else _FILES_OF_PLANS

    def memlock(self) -> Limit:
        return Limit(UNLIMITED, UNLIMITED)

    def program(self, name: str) -> str | None:  # noqa: ARG002
        return None

    def heard(self, port: int) -> ListeningSocket | Missing | None:
        return self._heard(port)


def seed_caches(root: Path, engine_version: str | None) -> None:
    """Write the cache files of every measured boot, once per engine version: a deleted file stays deleted."""
    version = engine_version or DEFAULT_VERSION
    marker = root / f"seeded-{version.replace('/', '_')}"
    if marker.exists():
        return
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    for checkpoint in known_checkpoints():
        for path, configs in measured_caches(checkpoint, version).items():
            if not (root / path).exists():
                store_configs(root, path, configs)
    marker.touch(mode=0o600)
