"""Failures of the engine itself, and the lines that only say that something failed."""

from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import Cause, Rank, cause

CAUSES: tuple[Cause, ...] = (
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
