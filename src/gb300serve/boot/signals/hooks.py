"""Patches that are mounted over the engine's Python: what they print when they work and when they do not."""

import re

from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import Cause, LineMark, Rank, Signal, cause, signal

SIGNALS: tuple[Signal, ...] = (
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

CAUSES: tuple[Cause, ...] = (
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
