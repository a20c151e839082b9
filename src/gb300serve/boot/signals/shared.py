"""What both engines print, through the same libraries: uvicorn, FlashInfer, the bars of checkpoint shards."""

import re

from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import Cause, LineMark, Rank, Signal, cause, signal

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


HOOK_SIGNALS: tuple[Signal, ...] = (
    signal("PIN_HOT finder armed", r".*?PIN_MODE=split\b", mark=LineMark.HOOK_ARMED),
    signal("PIN_HOT runner scanner hit", mark=LineMark.HOOK_WORKS),
    signal("PIN_HOT installed", mark=LineMark.HOOK_WORKS),
    signal("PIN_HOT rehome order", phase=Phase.OFFLOADING, mark=LineMark.HOOK_WORKS),
    signal("PIN_HOT rehome layer", phase=Phase.OFFLOADING, mark=LineMark.HOOK_WORKS),
    signal(
        "PIN_HOT rehome done",
        r".*?layers=(?P<layers>\d+) HBM_expert=(?P<hbm_gib>[\d.]+)GiB pinned_expert=(?P<pinned_gib>[\d.]+)GiB"
        r"(?: hbm_free=(?P<hbm_free_gib>[\d.]+)GiB host_avail=(?P<host_available_gib>[\d.]+)GiB)?",
        phase=Phase.PROFILING,
        receipt="hook_residency",
        mark=LineMark.HOOK_WORKS,
    ),
)

HOOK_CAUSES: tuple[Cause, ...] = (
    Cause(
        Reason.HOOK_NOT_INSTALLED,
        "hook FAILED",
        re.compile(r"\b(?P<hook>\w+) hook FAILED(?: to install)?: (?P<error>.*)"),
        fatal=False,
        lasting=True,
    ),
    Cause(
        Reason.HOOK_NOT_INSTALLED,
        "Error in sitecustomize",
        re.compile("(?P<error>Error in sitecustomize)"),
        fatal=False,
        lasting=True,
    ),
    cause(
        Reason.HOOK_ABORTED,
        "PIN_HOT abort",
        r"PIN_HOT abort(?: layer (?P<layer>\d+))?.*?(?P<what>MemAvailable|HBM free) (?P<available_gib>[\d.]+) ?GiB"
        r"(?: (?:<|need) (?P<needed_gib>[\d.]+) ?GiB)?",
    ),
    cause(Reason.HOOK_ABORTED, "PIN_HOT abort", rank=Rank.BROAD),
    cause(Reason.HOOK_ABORTED, "PIN_HOT rehome FAILED", r"PIN_HOT rehome FAILED:? ?(?P<error>.*)", rank=Rank.BROAD),
)


FAILURE_CAUSES: tuple[Cause, ...] = (
    cause(
        Reason.UNSUPPORTED_ON_ENGINE,
        "support",
        r"(?:Error: |Value error, )(?P<detail>.{0,400}?(?:does not (?:yet )?support|(?:is|are) not (?:yet |currently )?"
        r"supported|not supported (?:with|by|on|for|in|when)|[Uu]nsupported|only supported).*?)(?: \[type=|$)",
        Rank.BROAD,
    ),
    cause(Reason.UNSUPPORTED_ON_ENGINE, "NotImplementedError", r"NotImplementedError: (?P<detail>.+)", Rank.BROAD),
    cause(
        Reason.UNSUPPORTED_ON_ENGINE,
        "compatible with",
        r"(?:Error: |Value error, )(?P<detail>.{0,400}?(?:not compatible|incompatible) with.*?)(?: \[type=|$)",
        Rank.BROAD,
    ),
    cause(
        Reason.UNSUPPORTED_ON_ENGINE,
        "cannot be used",
        r"(?:Error: |Value error, )(?P<detail>.{0,400}?cannot be used (?:with|together).*?)(?: \[type=|$)",
        Rank.BROAD,
    ),
)

CLOSING: tuple[Cause, ...] = tuple(
    cause(Reason.UNKNOWN, needle, rank=Rank.CLOSING)
    for needle in ("Run 'docker run --help'", "exited with code", "scheduler is dead")
)
