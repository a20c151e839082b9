"""Published ports, `[ADDRESS:]HOST:CONTAINER[/PROTOCOL]` as `docker run -p` takes them."""

from collections.abc import Iterable

from gb300serve.core.text import natural


def published_port(network: str | None, ports: Iterable[str], inside: int) -> int | None:
    """The host's port that leads to port `inside`; on the host network that is the same one."""
    if network == "host":
        return inside
    for word in ports:
        host, container = split_port(word)
        if container == inside:
            return host
    return None


def split_port(word: str) -> tuple[int | None, int | None]:
    """Host and container port of one word; None where it has none (or a range, which is not followed)."""
    words = word.partition("/")[0].rsplit(":", 2)
    container = words[-1]
    host = words[-2] if len(words) > 1 else ""
    return natural(host), natural(container)
