"""The machine's clock."""

import time


class SystemClock:
    """`core.clock.Clock`, as the machine tells it."""

    def now(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
