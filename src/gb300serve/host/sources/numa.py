"""`/sys/devices/system/node`: page cache on nodes without CPUs, which is HBM that the driver gave to the kernel."""

import re

NODES = "/sys/devices/system/node"
_NODE = re.compile(r"node\d+")
_PAGES = re.compile(r"^Node \d+ FilePages:\s+(\d+) kB$", re.MULTILINE)


def nodes(names: tuple[str, ...]) -> tuple[str, ...]:
    """The nodes among the names of the directory."""
    return tuple(name for name in names if _NODE.fullmatch(name))


def cpulist(node: str) -> str:
    """The file with a node's CPUs; empty for memory alone."""
    return f"{NODES}/{node}/cpulist"


def meminfo(node: str) -> str:
    """The file with a node's memory."""
    return f"{NODES}/{node}/meminfo"


def page_cache(text: str) -> int:
    """Bytes of file pages on a node."""
    found = _PAGES.search(text)
    return int(found[1]) * 1024 if found else 0
