"""The records of vLLM's log: its own logger, FlashInfer's, uvicorn's, and its progress bars."""

from collections.abc import Sequence
from datetime import UTC, datetime

from gb300serve.simulator.engine.script import EventTimeline, format_clock, traceback_lines

API = "APIServer pid=1"
CORE = "EngineCore pid=364"
# FlashInfer times one operator profile by profile; the Station took 42.9 s for each.
_TUNED = "[AutoTuner]: Tuning flashinfer::trtllm_fp4_block_scale_moe"
_PROFILE_SECONDS = 42.91
_GRAPHS = 15
_SETTLED = 0.3
STAMP_FORMAT = "%m-%d %H:%M:%S"


class VllmTimeline(EventTimeline):
    """A timeline that writes records in vLLM's format."""

    def log(self, process: str, source: str, text: str, level: str = "INFO") -> None:
        """Write to vLLM's own logger (stdout)."""
        stamp = datetime.fromtimestamp(self.now, UTC).strftime(STAMP_FORMAT)
        for line in text.split("\n"):
            self.write("stdout", f"({process}) {level} {stamp} [{source}] {line}")

    def flashinfer(self, source: str, text: str, level: str = "INFO") -> None:
        """Write to FlashInfer's logger (stderr)."""
        moment = datetime.fromtimestamp(self.now, UTC)
        dated = f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d}"
        self.write("stderr", f"({CORE}) {dated} - {level} - {source} - flashinfer.jit: [Autotuner]: {text}")

    def uvicorn(self, text: str, level: str = "INFO") -> None:
        """Write a line of the HTTP server (stderr)."""
        self.write("stderr", f"({API}) {level + ':':<10}{text}")

    def logged_traceback(self, source: str, frames: Sequence[str], error: str) -> None:
        """Write a traceback as an ERROR of the engine process's logger (stdout)."""
        self.log(CORE, source, "\n".join(traceback_lines(frames, error)), level="ERROR")

    def process_traceback(self, process: str, frames: Sequence[str], error: str) -> None:
        """Write the traceback with which a process ends (stderr)."""
        self.traceback(frames, error, f"({process}) ")

    def shard_bars(self, shards: int, seconds: float) -> None:
        """Write the progress of the checkpoint's shards, one line for each update, and the seconds that they took."""
        steps = min(8, shards)
        pace = seconds / shards
        begun = self.at
        for step in range(steps + 1):
            done = shards * step // steps
            self.until(begun + done * pace)
            elapsed, left = format_clock(done * pace), format_clock((shards - done) * pace)
            times = f"{elapsed}<{left}, {pace:5.2f}s/it" if step else "00:00<?, ?it/s"
            share = f"{done * 100 // shards:3d}% Completed | {done}/{shards} [{times}]"
            self.write("stderr", f"\rLoading safetensors checkpoint shards: {share}")
        self.write("stderr", "")
        self.wait(_SETTLED)
        self.log(CORE, "default_loader.py:501", f"Loading weights took {seconds:.2f} seconds")

    def capture_bar(self, seconds: float) -> None:
        """Write the progress of one capture of CUDA graphs."""
        self.progress_bar("Capturing CUDA graphs (FULL)", _GRAPHS, seconds, steps=5)

    def tuning_bar(self, seconds: float) -> None:
        """Write the progress of kernel tuning."""
        self.progress_bar(_TUNED, max(1, round(seconds / _PROFILE_SECONDS)), seconds, "profile")
