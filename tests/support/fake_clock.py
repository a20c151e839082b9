"""A clock that moves only when somebody waits."""

# 2026-11-29 19:50:03 UTC
START = 1795981803.0


class FakeClock:
    def __init__(self, now: float = START) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
