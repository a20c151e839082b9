"""What the simulated Station tells of a running container beside its log: vital signs, files, stacks."""

import hashlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from gb300serve.lifecycle.ports import LogLine
from gb300serve.lifecycle.watch_ports import Vitals
from gb300serve.simulator.engine_faults import FAULTS
from gb300serve.simulator.station import SimulatedStation

# Cores that an engine keeps busy while it boots; one that hangs polls a queue.
_CORES = 1.0
_HEARTBEAT = "No available shared memory broadcast block"
_STACK = """\
Process 364: EngineCore
Python v3.12.3 (/usr/bin/python3.12)

Thread 364 (idle): "MainThread"
    read (safetensors/torch.py:338)
    safetensors_weights_iterator (vllm/model_executor/model_loader/weight_utils.py:812)
    load_weights (vllm/model_executor/model_loader/default_loader.py:492)
    load_model (vllm/v1/worker/gpu_worker.py:541)
    _init_executor (vllm/v1/executor/uniproc_executor.py:58)
    run_engine_core (vllm/v1/engine/core.py:1371)"""


class WatchedStation(SimulatedStation):
    """Satisfies `TellsVitals`, `KnowsProcesses`, `DumpsStacks` and `ReadsFiles` too."""

    def vitals(self, container: str) -> Vitals:
        """Virtual CPU seconds: one core, and none from where the engine hangs."""
        elapsed = self.elapsed(container)
        if not self._hangs(container):
            return Vitals(elapsed * _CORES, 0.9)
        seconds = busy_seconds(self.log(container))
        return Vitals(seconds * _CORES, 0.0 if elapsed > seconds else 0.9)

    def processes(self, container: str) -> frozenset[int]:
        pid = self._state(self._existing(container)).pid
        return frozenset() if pid is None else frozenset({pid})

    def stack_command(self, container: str) -> str:
        return f"docker exec {container} py-spy dump --pid 364    # on a Station; here nothing runs that has a stack"

    def stacks(self, container: str) -> str | None:
        return _STACK if self._hangs(container) else None

    def file_sha256(self, container: str, path: str) -> str | None:
        """Of the mounted file where this machine has it; else it is what the recipe pins, as every path exists here."""
        record = self._existing(container)
        fault = FAULTS.get(self._state(record).fault or "")
        if fault is not None and fault.patched:
            return hashlib.sha256(path.encode()).hexdigest()
        source = _source(record, path)
        if source is not None and source.is_file():
            return hashlib.sha256(source.read_bytes()).hexdigest()
        pinned: str | None = record.get("pinned", {}).get(path)
        return pinned

    def _hangs(self, container: str) -> bool:
        fault = FAULTS.get(self._state(self._existing(container)).fault or "")
        return fault is not None and fault.hangs


def busy_seconds(lines: Iterable[LogLine]) -> float:
    """When the engine last did anything: its last line that is no heartbeat."""
    return max((line.elapsed for line in lines if _HEARTBEAT not in line.text), default=0.0)


def _source(record: dict[str, Any], path: str) -> Path | None:
    """The file on this machine that a path in the container leads to, by its longest mount."""
    wanted = PurePosixPath(path)
    for target, source in sorted(record.get("mounts", {}).items(), key=lambda pair: -len(pair[0])):
        if wanted == PurePosixPath(target) or PurePosixPath(target) in wanted.parents:
            return Path(source) / wanted.relative_to(target)
    return None
