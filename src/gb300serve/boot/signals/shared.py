"""What both engines print, through the same libraries: uvicorn, FlashInfer, the bars of checkpoint shards."""

from gb300serve.boot.phases import Phase
from gb300serve.boot.signals.model import LineMark, Signal, signal

SIGNALS: tuple[Signal, ...] = (
    signal("Unable to find image", mark=LineMark.PREAMBLE),
    signal("usage: ", mark=LineMark.PREAMBLE),
    signal("Loading safetensors", r"Loading \S+ .*shards", phase=Phase.LOADING_WEIGHTS, mark=LineMark.BAR),
    signal("Loading pt", r"Loading \S+ .*shards", phase=Phase.LOADING_WEIGHTS, mark=LineMark.BAR),
    signal("Multi-thread loading shards", phase=Phase.LOADING_WEIGHTS, mark=LineMark.BAR),
    signal(
        "[Autotuner]: Loaded",
        r".*?Loaded (?P<configs>\d+) configs from (?P<path>\S+)",
        phase=Phase.TUNING_KERNELS,
        receipt="tuning_loaded",
        mark=LineMark.TUNING_LOADED,
    ),
    signal("[Autotuner]: Autotuning process starts", phase=Phase.TUNING_KERNELS, mark=LineMark.TUNING_STARTS),
    signal("[AutoTuner]: Tuning ", phase=Phase.TUNING_KERNELS, mark=LineMark.TUNING_BAR),
    signal("[Autotuner]: Autotuning process ends", mark=LineMark.TUNING_ENDS),
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
    signal("Shutting down", mark=LineMark.STOP),
    signal("Received SIGTERM", mark=LineMark.STOP),
    signal("Received SIGINT", mark=LineMark.STOP),
    signal("Received signal", r"Received signal (?:SIGTERM|SIGINT|15|2)\b", mark=LineMark.STOP),
    signal("KeyboardInterrupt", mark=LineMark.STOP),
)
