"""Whose log it is, told by lines that are no signs of a boot: frames of tracebacks, argparse, headers."""

import re
from functools import lru_cache
from typing import NamedTuple

from gb300serve.boot.signals.model import EngineName
from gb300serve.core.text import printable

QUIET = frozenset({"INFO", "WARNING", "DEBUG", "TRACE", "W", "I"})

_HEADER = re.compile(
    r"(?:[\w.-]+ +\| (?=.))?"
    r"(?:(?P<docker>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)(?:Z|[+-]\d\d:\d\d) )?"
    r"(?:\((?P<process>[\w.:-]+)(?: pid=\d+)?\) ?)?"
    r"(?:\[rank\d+\]:\s?)?"
    r"(?:(?P<level>[A-Z]{4,8}) (?P<vllm>\d\d-\d\d \d\d:\d\d:\d\d) \[?[\w./-]+:\d+\] ?"
    r"|(?P<dated>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?P<fraction>,\d+)? - (?P<level2>[A-Z]+) - (?:\S+ - )?(?:[\w.]+: )?"
    r"|\[(?P<sglang>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: [^\]]*)?\] "
    r"(?:(?P<level5>DEBUG|INFO|WARNING|ERROR|CRITICAL|TRACE):? +)?"
    r"|(?P<level3>INFO|WARNING|ERROR|CRITICAL): {2,}"
    r"|\[(?P<level4>[IWEF])\d{4} [^\]]*\] )?"
)


class Record(NamedTuple):
    """`stamp` is `MM-DD HH:MM:SS` with a fraction where the log has one, or ""; `level` is "" for bare output.

    `form` is the engine whose logger writes such headers; any program may write SGLang's, which has no level.
    """

    process: str
    level: str
    stamp: str
    text: str
    form: EngineName | None = None


def parse(line: str) -> Record:
    """Take one record apart; whatever has no known header is all text."""
    if "\x1b" in line:
        line = printable(line)
    match = _HEADER.match(line)
    if match is None or not match.end():
        return Record("", "", "", line)
    docker, process, level, vllm, dated, fraction, level2, sglang, level5, level3, level4 = match.groups()
    form: EngineName | None = "vllm" if vllm else "sglang" if sglang else None
    if docker:
        stamp = f"{docker[5:10]} {docker[11:]}"
    elif vllm:
        stamp = vllm
    elif dated:
        stamp = dated[5:] + (fraction or "").replace(",", ".")
    else:
        stamp = sglang[5:] if sglang else ""
    level = level or level2 or level3 or level4 or level5 or ""
    return Record(process or "", level, stamp, line[match.end() :], form)


_DAYS_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_DAY = 86400.0
_YEAR = 365 * _DAY


@lru_cache(maxsize=64)
def _day_of_year(month_day: str) -> int:
    month, day = int(month_day[:2]), int(month_day[3:5])
    return _DAYS_BEFORE_MONTH[(month - 1) % 12] + day - 1


def seconds(stamp: str) -> float:
    """Seconds since the turn of a common year of a stamp `MM-DD HH:MM:SS[.fraction]`."""
    time = int(stamp[6:8]) * 3600 + int(stamp[9:11]) * 60 + float(stamp[12:])
    return _day_of_year(stamp[:5]) * _DAY + time


class Stopwatch:
    """Seconds of one boot, from its own stamps or from what the caller says. Never runs backwards.

    Stamps of one boot can be out of order by some seconds (several processes write them); the later time stands.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._origin: float | None = None
        self._latest = 0.0
        self._shift = 0.0
        self._day = ""
        self._unread = ""

    def told(self, at: float) -> None:
        """The caller's clock reads `at` seconds since the boot began; or a bar says so."""
        self._now = max(self._now, at)

    def saw(self, stamp: str) -> None:
        """A line carried `stamp`; all but the first are read only when the time is asked for."""
        if self._origin is None:
            self._read(stamp)
        else:
            self._unread = stamp

    def now(self) -> float:
        """Seconds since the boot began."""
        if self._unread:
            self._read(self._unread)
            self._unread = ""
        return self._now

    def _read(self, stamp: str) -> None:
        if self._day == "02-29" and stamp.startswith("03"):
            self._shift += _DAY
        self._day = stamp[:5]
        time = seconds(stamp) + self._shift
        if self._origin is None:
            self._origin = self._latest = time
        elif time < self._latest - _YEAR / 2:
            self._shift += _YEAR
            time += _YEAR
        self._latest = max(self._latest, time)
        self._now = max(self._now, time - self._origin)


# A frame of a traceback, a warning's place: the package's own directory is in its path.
_PACKAGES: tuple[tuple[str, EngineName], ...] = (("/sglang/", "sglang"), ("/vllm/", "vllm"))
# Argparse's last line, after `usage: …`, which may have been cut off.
_PROGRAMS: tuple[tuple[str, EngineName], ...] = (
    ("sglang serve: error: ", "sglang"),
    ("launch_server.py: error: ", "sglang"),
    ("vllm serve: error: ", "vllm"),
    ("api_server.py: error: ", "vllm"),
)


def told_by(record: Record) -> EngineName | None:
    """The engine that must have printed this record, or None."""
    if record.form == "vllm":
        return "vllm"
    text = record.text
    found = next((engine for start, engine in _PROGRAMS if text.startswith(start)), None)
    if found is not None or not text.startswith(("  File ", "/")):
        return found
    return next((engine for path, engine in _PACKAGES if path in text), None)
