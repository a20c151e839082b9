"""Seconds from the stamps of a log, which have no year and are a little out of order."""

from functools import lru_cache

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
