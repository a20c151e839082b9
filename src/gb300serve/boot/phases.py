"""The phases of a boot, and how long each may be silent."""

from enum import StrEnum


class Phase(StrEnum):
    """In the order of a boot; a phase may come more than once."""

    STARTING = "starting"
    LOADING_WEIGHTS = "loading-weights"
    OFFLOADING = "offloading"
    PROFILING = "profiling"
    COMPILING = "compiling"
    SIZING_KV_CACHE = "sizing-kv-cache"
    TUNING_KERNELS = "tuning-kernels"
    CAPTURING_GRAPHS = "capturing-graphs"
    SERVING = "serving"


# Seconds without progress after which a phase counts as stalled. The lane's own scripts wait half an hour; a checkpoint
# on a network share loads for 1,246 s with a moving bar. Tuning was silent for up to 81 minutes on the Station, so a
# shorter limit raises false alarms.
DEFAULT_PATIENCE = 1800.0
PATIENCE: dict[Phase, float] = dict.fromkeys(Phase, DEFAULT_PATIENCE) | {Phase.TUNING_KERNELS: 5400.0}

# What the engine does in a phase, as a part of a sentence.
ACTIVITIES: dict[Phase, str] = {
    Phase.STARTING: "starting",
    Phase.LOADING_WEIGHTS: "loading weights",
    Phase.OFFLOADING: "offloading weights",
    Phase.PROFILING: "profiling its memory",
    Phase.COMPILING: "compiling kernels",
    Phase.SIZING_KV_CACHE: "sizing the KV cache",
    Phase.TUNING_KERNELS: "tuning kernels",
    Phase.CAPTURING_GRAPHS: "capturing CUDA graphs",
    Phase.SERVING: "serving",
}
