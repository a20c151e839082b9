"""Progress bars as tqdm draws them: `title:  22%|██  | 5/22 [03:00<13:00, 42.84s/profile]`."""

import re
from dataclasses import dataclass
from functools import lru_cache

_BAR = re.compile(
    r"(?P<title>.*?):? +\d+%.*?(?P<done>[0-9]{1,12})/(?P<total>[0-9]{1,12}) \[(?P<elapsed>[0-9:]{1,12})<?"
)

# A bar fits into a terminal; a search for one takes the square of a text's length.
LONGEST = 512


@dataclass(frozen=True, slots=True)
class ProgressBar:
    """`elapsed` is seconds since the bar was first drawn."""

    title: str
    done: int
    total: int
    elapsed: float


@lru_cache(maxsize=2)  # asked for the time and for the progress of the same text
def read_bar(text: str) -> ProgressBar | None:
    """The bar that `text` draws, or None (also for one that is cut off)."""
    match = _BAR.match(text, 0, LONGEST)
    if match is None:
        return None
    elapsed = 0.0
    for part in match["elapsed"].split(":"):
        elapsed = elapsed * 60 + float(part or 0)
    return ProgressBar(match["title"], int(match["done"]), int(match["total"]), elapsed)


class BarClock:
    """The time of bars that are drawn without a stamp, from how long they say that they have been running."""

    def __init__(self) -> None:
        self._title = ""
        self._began = 0.0
        self._elapsed = 0.0

    def time_of(self, bar: ProgressBar, now: float) -> float:
        """Seconds since the start of the boot; `now` is the time of the latest stamp."""
        if bar.title != self._title or bar.elapsed < self._elapsed:
            self._title, self._began = bar.title, now - bar.elapsed
        self._elapsed = bar.elapsed
        return self._began + bar.elapsed
