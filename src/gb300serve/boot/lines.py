"""A line of a log: its header, its time and its text."""

import re
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from gb300serve.core.text import printable

HeaderForm: TypeAlias = Literal["levelled", "bracketed"]
"""`INFO 11-30 00:53:21 [file.py:12] text`, or `[2026-11-30 00:53:21] text`; only the forms that engines tell apart."""

QUIET = frozenset({"INFO", "WARNING", "DEBUG", "TRACE", "W", "I"})

_HEADER = re.compile(
    r"(?:\((?P<process>[\w.:-]+(?: rank=\d+)?)(?: pid=\d+)?(?:, ip=[\w.:]+)?\) ?){0,3}"
    r"(?:\[rank\d+\]:\s?)?"
    r"(?:(?P<level>[A-Z]{4,8}) (?:(?P<levelled>\d\d-\d\d \d\d:\d\d:\d\d) \[?|\[)[\w./-]+:\d+\] ?"
    r"|(?P<dated>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?P<fraction>,\d+)? - (?P<level2>[A-Z]+) - (?:\S+ - )?(?:[\w.]+: )?"
    r"|\[(?P<bracketed>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: [^\]]*)?\] "
    r"(?:(?P<level5>DEBUG|INFO|WARNING|ERROR|CRITICAL|TRACE):? +)?"
    r"|(?P<level3>INFO|WARNING|ERROR|CRITICAL): {2,}"
    r"|\[(?P<level4>[IWEF])\d{4} [^\]]*\] )?"
)
# vLLM until 0.8 logs an exception as Python writes it: `RuntimeError('CUDA error: out of memory')`.
_WRITTEN = re.compile(
    r"(?P<exception>(?:\w+\.)*[A-Z]\w*(?:Error|Exception))\((?P<quote>['\"])(?P<message>.*)(?P=quote)\)"
)
# Ray prints a line that several workers share once, and appends how many workers printed it.
_REPEATED = re.compile(r" [\[(]repeated \d+x across cluster.*")


class Record(NamedTuple):
    """`stamp` is `MM-DD HH:MM:SS`, with a fraction if the log has one, or ""; `level` is "" for bare output."""

    process: str
    level: str
    stamp: str
    text: str
    form: HeaderForm | None = None


def parse(line: str) -> Record:
    """Split one record into its parts; a record without a known header is all text."""
    if "\x1b" in line:
        line = printable(line)
    if "across cluster" in line:
        line = _REPEATED.sub("", line)
    line = line.removeprefix("^C")  # the terminal shows the keys of whoever stops the engine
    match = _HEADER.match(line)
    if match is None or not match.end():
        return Record("", "", "", line)
    process, level, levelled, dated, fraction, level2, bracketed, level5, level3, level4 = match.groups()
    form: HeaderForm | None = "levelled" if level else "bracketed" if bracketed else None
    if levelled:
        stamp = levelled
    elif dated:
        stamp = dated[5:] + (fraction or "").replace(",", ".")
    else:
        stamp = bracketed[5:] if bracketed else ""
    level = level or level2 or level3 or level4 or level5 or ""
    text = line[match.end() :]
    if level == "ERROR" and text.endswith(")") and (written := _WRITTEN.fullmatch(text)):
        text = f"{written['exception']}: {written['message'].partition(chr(92) + 'n')[0]}"
    return Record(process or "", level, stamp, text, form)


_DAYS_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
_DAY = 86400.0
_YEAR = 365 * _DAY


@lru_cache(maxsize=64)
def _day_of_year(month_day: str) -> int:
    month, day = int(month_day[:2]), int(month_day[3:5])
    return _DAYS_BEFORE_MONTH[(month - 1) % 12] + day - 1


def seconds(stamp: str) -> float:
    """Seconds since the beginning of a common year of a stamp `MM-DD HH:MM:SS[.fraction]`."""
    time = int(stamp[6:8]) * 3600 + int(stamp[9:11]) * 60 + float(stamp[12:])
    return _day_of_year(stamp[:5]) * _DAY + time


class Stopwatch:
    """Seconds of one boot, from its stamps or from the caller's clock. It never runs backwards.

    Stamps of one boot can be out of order by some seconds (several processes write them); the later time counts.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._origin: float | None = None
        self._latest = 0.0
        self._shift = 0.0
        self._day = ""
        self._unread = ""

    def advance(self, at: float) -> None:
        """It is at least `at` seconds since the boot began, by the caller's clock or by a progress bar."""
        self._now = max(self._now, at)

    def take_stamp(self, stamp: str) -> None:
        """The stamp of a line; all but the first are parsed only when the time is needed."""
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
            self._origin, self._latest = time - self._now, time
        elif time < self._latest - _YEAR / 2:
            self._shift += _YEAR
            time += _YEAR
        self._latest = max(self._latest, time)
        self._now = max(self._now, time - self._origin)
