"""The words that `docker run` takes, read as its client reads them (docker/cli 28.2). Pure."""

import re
from collections.abc import Iterator
from typing import Any

from gb300serve.core.errors import CompileError
from gb300serve.plan.sizes import read_size

Json = dict[str, Any]

_PORT = re.compile(r"(?:(?P<ip>\[[^\]]*\]|[^:]*):)??(?:(?P<host>[\d-]*):)?(?P<inside>[\d-]+)(?:/(?P<protocol>\w+))?")
# vendor.tld/class=name: a device of the Container Device Interface.
_CDI = re.compile(r"[A-Za-z][\w.-]*/[A-Za-z][\w-]*=[\w.:-]+")


class DockerWordError(CompileError):
    """An option's value that Docker's client would not take."""

    def __init__(self, option: str, text: str, expected: str) -> None:
        super().__init__(f"{option}: {text!r} is not what docker takes", hint=f"write {expected}")


def size(option: str, text: str | None) -> int:
    """`16g` → bytes, in powers of 1024; 0 for None, which leaves the choice to the daemon."""
    if text is None:
        return 0
    found = read_size(text)
    if found is None:
        raise DockerWordError(option, text, "a number and b, k, m, g, t or p, such as 16g")
    return found.bytes


def capabilities(words: tuple[str, ...]) -> list[str] | None:
    """Sorted, each once, with the prefix that ALL alone goes without."""
    bare = {word.upper().removeprefix("CAP_") for word in words}
    return sorted(name if name == "ALL" else f"CAP_{name}" for name in bare) or None


def ulimits(limits: dict[str, int | tuple[int, int]]) -> list[Json]:
    """Soft and hard limit of each; one number is both."""
    pairs = {name: value if isinstance(value, tuple) else (value, value) for name, value in limits.items()}
    return [{"Name": name, "Hard": pairs[name][1], "Soft": pairs[name][0]} for name in sorted(pairs)]


def gpu_requests(selection: str | None) -> list[Json]:
    """`all`, a count, or `device=` and a comma-separated list."""
    if selection is None:
        return []
    request: Json = {"Driver": "", "Count": 0, "DeviceIDs": None, "Capabilities": [["gpu"]], "Options": {}}
    chosen = selection.strip('"')
    if chosen.startswith("device="):
        return [request | {"DeviceIDs": chosen.removeprefix("device=").split(",")}]
    if chosen == "all":
        return [request | {"Count": -1}]
    if not chosen.isdecimal():
        raise DockerWordError("container.gpus", selection, "all, a count, or device=GPU-uuid[,GPU-uuid]")
    return [request | {"Count": int(chosen)}]


def cdi_requests(words: tuple[str, ...]) -> list[Json]:
    """The devices that are named by the Container Device Interface, as one request."""
    names = [word for word in words if _CDI.fullmatch(word)]
    return [{"Driver": "cdi", "Count": 0, "DeviceIDs": names, "Capabilities": None, "Options": None}] if names else []


def devices(words: tuple[str, ...]) -> list[Json]:
    """`/dev/a[:/dev/b][:rwm]`, those named by the Container Device Interface left out."""
    return [_device(word) for word in words if not _CDI.fullmatch(word)]


def _device(word: str) -> Json:
    outside, *rest = word.split(":")
    if len(rest) > 2 or not outside:
        raise DockerWordError("container.devices", word, "/dev/path[:/dev/path][:rwm]")
    modes = rest.pop() if rest and (len(rest) == 2 or _is_mode(rest[0])) else "rwm"
    return {"PathOnHost": outside, "PathInContainer": rest[0] if rest else outside, "CgroupPermissions": modes}


def _is_mode(word: str) -> bool:
    return word != "" and set(word) <= set("rwm") and len(set(word)) == len(word)


def port_bindings(words: tuple[str, ...]) -> dict[str, list[Json]]:
    """`[ip:][host[-host]:]inside[-inside][/protocol]` → `inside/protocol` → where it is reached."""
    bindings: dict[str, list[Json]] = {}
    for word in words:
        for inside, binding in _port_pairs(word):
            bindings.setdefault(inside, []).append(binding)
    return bindings


def _port_pairs(word: str) -> Iterator[tuple[str, Json]]:
    expected = "[ip:][host-port:]container-port[/protocol], such as 8021:8000"
    found = _PORT.fullmatch(word)
    inside, outside = (_range(found["inside"]), _range(found["host"] or "")) if found else ((), ())
    if not found or not inside or (found["host"] and not outside):
        raise DockerWordError("container.ports", word, expected)
    address = (found["ip"] or "").strip("[]")
    if len(outside) > 1 and len(inside) == 1:  # any free one of these
        hosts: tuple[str, ...] = (found["host"],)
    elif outside and len(outside) != len(inside):
        raise DockerWordError("container.ports", word, "as many ports before the colon as after it")
    else:
        hosts = tuple(map(str, outside)) or ("",) * len(inside)
    protocol = (found["protocol"] or "tcp").lower()
    for port, host in zip(inside, hosts, strict=True):
        yield f"{port}/{protocol}", {"HostIp": address, "HostPort": host}


def _range(text: str) -> tuple[int, ...]:
    """`8000-8003` → each of them; nothing where the text names no port."""
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        return ()
    ports = tuple(range(int(first), int(last or first) + 1))
    return ports if ports and ports[0] > 0 and ports[-1] < 65536 else ()


def tmpfs(words: tuple[str, ...]) -> dict[str, str]:
    """`/run:size=64m` → path and options."""
    return {path: options for path, _, options in (word.partition(":") for word in words)}
