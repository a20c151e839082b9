"""`/proc/meminfo`: the host's memory (proc(5))."""

import re
from dataclasses import dataclass

from gb300serve.host.missing import Missing

PATH = "/proc/meminfo"
_LINE = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Bytes. `available` is what can be had without swapping; `page_cache` is part of it, but for what is pinned."""

    total: int
    available: int
    page_cache: int


def parse(text: str) -> HostMemory | Missing:
    """The three figures."""
    found = {name: int(size) * 1024 for name, size in _LINE.findall(text)}
    try:
        return HostMemory(found["MemTotal"], found["MemAvailable"], found.get("Cached", 0))
    except KeyError as error:
        return Missing(f"{PATH} has no {error.args[0]}")
