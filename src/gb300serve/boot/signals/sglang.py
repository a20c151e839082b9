"""SGLang: the lines of a boot that goes well."""

from gb300serve.boot.phases import Phase
from gb300serve.boot.signals.model import Mark, Signal, signal

SIGNALS: tuple[Signal, ...] = (
    signal("server_args=", mark=Mark.ARGUMENTS),
    signal("Load weight begin.", phase=Phase.LOADING_WEIGHTS),
    signal(
        "Load weight end.",
        r".*?(?:elapsed=(?P<seconds>[\d.]+) s,.*?)?mem usage=(?P<gib>[\d.]+) GB",
        phase=Phase.PROFILING,
        receipt="model_loading",
    ),
    signal(
        "KV Cache is allocated.",
        r".*?#tokens: (?P<tokens>\d+)",
        phase=Phase.SIZING_KV_CACHE,
        receipt="kv_cache_tokens",
        mark=Mark.SIZED,
    ),
    signal("Mamba Cache is allocated.", phase=Phase.SIZING_KV_CACHE),
    signal("Memory pool end.", phase=Phase.SIZING_KV_CACHE),
    signal("Capture cuda graph begin.", phase=Phase.CAPTURING_GRAPHS),
    signal(
        "Capture cuda graph end.",
        r".*?elapsed: (?P<seconds>[\d.]+) s\.(?: mem usage=(?P<gib>[\d.]+) GB)?",
        receipt="graph_capture",
        mark=Mark.GRAPHS_CAPTURED,
    ),
    signal("The server is fired up and ready to roll!", phase=Phase.SERVING, mark=Mark.COMPLETE),
    signal("SIGTERM received", mark=Mark.STOP),
    signal("Gracefully exiting", mark=Mark.STOP),
)
