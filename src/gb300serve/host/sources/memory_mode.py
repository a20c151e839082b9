"""`/proc/driver/nvidia/params`: whether the driver keeps the GPU's memory to itself (CDMM) on a coherent link."""

import re

from gb300serve.host.missing import Missing

PATH = "/proc/driver/nvidia/params"
CDMM = "driver"
_MODE = re.compile(r'^CoherentGPUMemoryMode: "?(\w*)"?$', re.MULTILINE)


def parse(text: str) -> str | Missing:
    """`driver`, `numa` or empty (not set)."""
    found = _MODE.search(text)
    return found[1] if found else Missing(f"{PATH} has no CoherentGPUMemoryMode: the driver is too old to know it")
