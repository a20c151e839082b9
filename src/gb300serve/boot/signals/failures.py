"""Failures of the engine itself, and the lines that only say that something failed."""

from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import Cause, Rank, cause

CAUSES: tuple[Cause, ...] = (
    cause(
        Reason.ENGINE_STARTUP_TIMEOUT,
        "Timed out waiting for engine",
        r"Timed out waiting for engine(?:.*?Waited (?P<waited_seconds>\d+) ?s)?(?:.*?by (?P<variable>[A-Z][A-Z_]+))?",
        engine="vllm",
    ),
    cause(
        Reason.ENGINE_STARTUP_TIMEOUT,
        "Did not receive response from front-end process within",
        r"within (?P<waited_minutes>\d+) minutes",
        engine="vllm",
    ),
    cause(
        Reason.UNSUPPORTED_ON_ENGINE,
        "Model Runner V",
        r"Model Runner (?P<runner>V\d) does not (?:yet )?support:? (?P<feature>.*?)(?: \[type=|$)",
        engine="vllm",
    ),
    cause(
        Reason.UNSUPPORTED_ON_ENGINE,
        "has no classic-MTP draft",
        r"(?P<feature>mtp).*Use speculative method '(?P<instead>\w+)'|has no classic-MTP draft",
        engine="vllm",
    ),
    cause(Reason.UNSUPPORTED_ON_ENGINE, "EngramConfig requires a model with", engine="vllm"),
    cause(
        Reason.UNSUPPORTED_ON_ENGINE,
        "No valid attention backend found",
        r"No valid attention backend found(?P<detail>.*)",
        Rank.BROAD,
        engine="vllm",
    ),
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

CLOSING: tuple[Cause, ...] = (
    *(
        cause(Reason.UNKNOWN, needle, rank=Rank.CLOSING, engine="vllm")
        for needle in (
            "EngineCore failed to start",
            "EngineCore encountered a fatal error",
            "EngineCore encountered an issue",
            "EngineDeadError",
            "Executor failed",
            # The engine's call that its worker, dead, will not answer.
            "RuntimeError: cancelled",
        )
    ),
    # A process that fails says so before who waits for it says this; one that is killed cannot. The first line counts.
    cause(Reason.KILLED, "Engine core initialization failed", rank=Rank.CLOSING, engine="vllm"),
    cause(Reason.UNKNOWN, "WorkerProc failed to start", rank=Rank.CLOSING_WORKER, engine="vllm"),
    cause(Reason.KILLED, "WorkerProc initialization failed", rank=Rank.CLOSING_WORKER, engine="vllm"),
    *(
        cause(Reason.UNKNOWN, needle, rank=Rank.CLOSING)
        for needle in ("Run 'docker run --help'", "exited with code", "scheduler is dead")
    ),
)

# The exception that Python prints last; its class may be dotted, its message may be empty.
EXCEPTION = (
    r"^(?P<exception>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failure|Timeout|Fault|Abort))"
    r"(?:: ?(?P<message>.*))?$"
)
# Docker's client names its error, not its cause, when our tables do not know the text.
DOCKER = r"^docker: (?:Error response from daemon: )?(?P<message>.+)$"
