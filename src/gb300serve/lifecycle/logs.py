"""The log of a lane: as it stands, or followed; and what it says of how the lane ended."""

from collections import deque
from collections.abc import Iterator

from gb300serve.boot.diagnosis import Diagnosis
from gb300serve.fit.reading import Reading
from gb300serve.lifecycle.conflicts import live
from gb300serve.lifecycle.ports import Container, ContainerBackend, LogLine
from gb300serve.lifecycle.ready import TICK
from gb300serve.lifecycle.tools import Tools


def logs(
    backend: ContainerBackend, container: Container, *, tail: int | None = None, follow: bool = False
) -> Iterator[LogLine]:
    """The log since the last start, its last `tail` lines; with `follow`, on until the container ends."""
    if not follow:
        yield from backend.log(container.id, tail)
        return
    old = () if tail is None else tuple(line.elapsed for line in backend.log(container.id))
    yield from _from_tail(backend.follow(container.id, TICK), tail, old)


def _from_tail(stream: Iterator[LogLine | None], tail: int | None, old: tuple[float, ...]) -> Iterator[LogLine]:
    """The last `tail` of the lines that were there (of those moments), and what follows.

    Counting alone would leave out new lines where old ones went meanwhile: a log is rotated.
    """
    left, end = len(old), max(old, default=0.0)
    last: deque[LogLine] = deque(maxlen=tail)
    for line in stream:
        if line is not None and left > 0 and line.elapsed <= end:
            last.append(line)
            left -= 1
        elif line is not None or left == 0 or (last and last[-1].elapsed >= end):
            yield from last
            last.clear()
            left = 0
            if line is not None:
                yield line
    yield from last


def diagnose(container: Container, tools: Tools) -> Diagnosis:
    """What the log since the last start says; a running container's clock is told too."""
    reading = Reading(tools.machine())
    for line in tools.backend.log(container.id):
        reading.feed(line.text, line.elapsed)
    if live(container):
        reading.machine.tick(tools.backend.elapsed(container.id))
    return reading.result()


def died(container: Container, diagnosis: Diagnosis) -> bool:
    """Whether a container that has served and ended did so without being asked.

    The engine's death leaves exit code 0 (vLLM 0.32): 0 means a stop only after the engine's own shutdown line.
    137, 143 and 130 were all seen for stops of ours, so without another sign they count as such.
    """
    if diagnosis.state == "stopped":
        return False
    if container.oom_killed or diagnosis.state == "failed":
        return True
    if container.exit_code == 0:
        return "vllm" in " ".join((container.image, *container.command[:3])).lower()
    return container.exit_code not in {130, 137, 143}
