"""The log of a simulated container: one JSON object a record, read as it stands or as it grows."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from gb300serve.core.clock import Clock
from gb300serve.lifecycle.ports import LogLine

# How often the log is looked at, in virtual seconds and within these bounds of real ones: on a fast clock a pause would
# pass for silence, on a real one each look costs more than the lines that it finds.
_POLL, _SOONEST, _LATEST = 10.0, 0.05, 0.2
# Whether a container has ended costs 0.3 ms to find out, fifty times as much as a look at its log.
_ASK = 0.1


def _line(record: str) -> LogLine:
    content = json.loads(record)
    return LogLine(content["text"], float(content["at"]), content["stream"])


def read(path: Path) -> Iterator[LogLine]:
    """All whole records; none where there is no log."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for record in file:
            if record.endswith(b"\n"):
                yield _line(record.decode())


def poll(speed: float) -> float:
    """Real seconds between two looks, at `speed` virtual ones a second."""
    return min(max(_POLL / speed, _SOONEST), _LATEST)


def follow(
    path: Path, ended: Callable[[], bool], clock: Clock, every: float, look: float = _SOONEST
) -> Iterator[LogLine | None]:
    """Each record once, live; None after every `every` seconds of silence; ends when `ended` and all is read.

    `look`: seconds between two looks at the file.
    """
    while not path.exists():
        if ended():
            return
        clock.sleep(min(every, look))
    with path.open("rb") as file:
        rest, heard, asked = b"", clock.now(), clock.now() - _ASK
        while True:
            data, last = file.read(), False
            if not data and clock.now() - asked >= _ASK:
                # What was written before the end is read after it is known.
                last, asked = ended(), clock.now()
                data = file.read()
            whole, _, rest = (rest + data).rpartition(b"\n")
            records = whole.decode().split("\n") if whole else ()
            heard = clock.now() if records else heard
            yield from map(_line, records)
            if last:
                return
            if not records:
                if clock.now() - heard >= every:
                    heard = clock.now()
                    yield None
                else:
                    clock.sleep(min(every, look))
