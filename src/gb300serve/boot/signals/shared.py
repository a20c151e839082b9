"""What both engines print, through the same libraries: uvicorn, FlashInfer, the bars of checkpoint shards."""

from gb300serve.boot.phases import Phase
from gb300serve.boot.signals.model import Mark, Signal, signal

SIGNALS: tuple[Signal, ...] = (
    signal("Unable to find image", mark=Mark.PREAMBLE),
    signal("usage: ", mark=Mark.PREAMBLE),
    signal("Loading safetensors", r"Loading \S+ .*shards", phase=Phase.LOADING_WEIGHTS, mark=Mark.BAR),
    signal("Loading pt", r"Loading \S+ .*shards", phase=Phase.LOADING_WEIGHTS, mark=Mark.BAR),
    signal("Multi-thread loading shards", phase=Phase.LOADING_WEIGHTS, mark=Mark.BAR),
    signal(
        "[Autotuner]: Loaded",
        r".*?Loaded (?P<configs>\d+) configs from (?P<path>\S+)",
        phase=Phase.TUNING_KERNELS,
        receipt="tuning_loaded",
        mark=Mark.TUNING_LOADED,
    ),
    signal("[Autotuner]: Autotuning process starts", phase=Phase.TUNING_KERNELS, mark=Mark.TUNING_STARTS),
    signal("[AutoTuner]: Tuning ", phase=Phase.TUNING_KERNELS, mark=Mark.TUNING_BAR),
    signal("[Autotuner]: Autotuning process ends", mark=Mark.TUNING_ENDS),
    signal(
        "[Autotuner]: Saved",
        r".*?Saved (?P<configs>\d+) configs to (?P<path>\S+)(?: \((?P<new>\d+) new, (?P<previous>\d+) from)?",
        receipt="tuning_saved",
    ),
    signal(
        "[Autotuner]: Cache file",
        r".*?Cache file (?P<path>\S+) was created in a different environment \((?P<difference>.*?)\)\. Ignoring",
        receipt="tuning_cache_ignored",
    ),
    signal("Started server process", phase=Phase.SERVING),
    signal("Shutting down", mark=Mark.STOP),
    signal("Received SIGTERM", mark=Mark.STOP),
    signal("Received SIGINT", mark=Mark.STOP),
    signal("Received signal", r"Received signal (?:SIGTERM|SIGINT|15|2)\b", mark=Mark.STOP),
    signal("KeyboardInterrupt", mark=Mark.STOP),
)
