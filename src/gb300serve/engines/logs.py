"""The logs of all engines, for the boot machine.

Not in `registry`, so that a compile does not load their 300 patterns.
"""

from gb300serve.boot.machine import BootMachine
from gb300serve.boot.signals.index import BootSignals
from gb300serve.engines.sglang.log import LOG as SGLANG
from gb300serve.engines.vllm.log import LOG as VLLM

# A log that shows no engine is read as the first one's.
LOGS = (VLLM, SGLANG)
SIGNALS = BootSignals(LOGS)


def boot_machine() -> BootMachine:
    """A boot machine for the log of any engine."""
    return BootMachine(SIGNALS)
