"""Progress bars: shards end each update with a line feed, all others only with a carriage return."""

from dataclasses import dataclass

from gb300serve.simulator.engine_tape import CORE, EventTimeline, bar, clock

# One operator's kernels are measured profile by profile; 42.9 s each is what the Station was seen to take.
_TUNED = "[AutoTuner]: Tuning flashinfer::trtllm_fp4_block_scale_moe"
_PROFILE_SECONDS = 42.91
_GRAPHS = 15
_SETTLED = 0.3


def shard_bars(tape: EventTimeline, shards: int, seconds: float) -> None:
    """The checkpoint's shards in up to eight updates, then how long they took."""
    steps = min(8, shards)
    pace = seconds / shards
    begun = tape.at
    for step in range(steps + 1):
        done = shards * step // steps
        tape.until(begun + done * pace)
        if step == 0:
            times = "00:00<?, ?it/s"
        else:
            times = f"{clock(done * pace)}<{clock((shards - done) * pace)}, {pace:5.2f}s/it"
        share = f"{done * 100 // shards:3d}% Completed | {done}/{shards} [{times}]"
        tape.say("stderr", f"\rLoading safetensors checkpoint shards: {share}")
    tape.say("stderr", "")
    tape.wait(_SETTLED)
    tape.log(CORE, "default_loader.py:501", f"Loading weights took {seconds:.2f} seconds")


@dataclass(frozen=True, slots=True)
class _Bar:
    """What a bar counts: its label, how many, seconds for each, the unit's name, updates in all."""

    label: str
    total: int
    pace: float
    unit: str
    steps: int


def _silent_bar(tape: EventTimeline, of: _Bar) -> None:
    """A bar that rewrites itself; the line feed comes when it is full."""
    begun = tape.at
    for step in range(of.steps + 1):
        done = of.total * step // of.steps
        tape.until(begun + done * of.pace)
        times = f"{clock(done * of.pace)}<{clock((of.total - done) * of.pace)}, {of.pace:5.2f}s/{of.unit}"
        shown = f"\r{of.label}: {done * 100 // of.total:3d}%|{bar(done, of.total)}| {done}/{of.total} [{times}]"
        tape.say("stderr", shown, end="\n" if done == of.total else "")


def capture_bar(tape: EventTimeline, seconds: float) -> None:
    """One capture of CUDA graphs."""
    _silent_bar(tape, _Bar("Capturing CUDA graphs (FULL)", _GRAPHS, seconds / _GRAPHS, "it", steps=5))


def tuning_bar(tape: EventTimeline, seconds: float) -> None:
    """Tuning kernels, profile by profile."""
    total = max(1, round(seconds / _PROFILE_SECONDS))
    _silent_bar(tape, _Bar(_TUNED, total, seconds / total, "profile", steps=total))
