"""How long a boot may go without a sign of life before the watch gives up."""

from collections.abc import Mapping

from gb300serve.boot.phases import DEFAULT_PATIENCE, PATIENCE, Phase

# A checkpoint on a network share took eight times as long as on local NVMe (1,246 s against 153 s), and lived.
FACTOR = 10.0
# From "startup complete" to a completed request; the first request may compile kernels for two minutes.
ANSWER_PATIENCE = 900.0
# A cause was named, and the engine neither ends nor goes on: its processes hang in their own shutdown.
CAUSE_PATIENCE = 60.0


def patience(phase: Phase | None, expected: Mapping[str, float]) -> float:
    """Seconds since the last sign of life (a phase, progress, a receipt), in the container's time."""
    if phase is None:
        return DEFAULT_PATIENCE
    return max(PATIENCE[phase], FACTOR * expected.get(phase.value, 0.0))
