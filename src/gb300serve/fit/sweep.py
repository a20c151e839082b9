"""A sweep: one setting at many values, `PATH=a..b[:step]`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from gb300serve.core.errors import CommandLineError
from gb300serve.fit.answer import FitResult

MOST_STEPS = 1000
_NUMBER = r"-?\d+(?:\.\d+)?"
_RANGE = re.compile(rf"(?P<path>.+)=(?P<first>{_NUMBER})\.\.(?P<last>{_NUMBER})(?::(?P<step>{_NUMBER}))?")


class NotSweepError(CommandLineError):
    """The argument is no range that can be walked."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(
            f"--sweep {text}: {reason}",
            hint="PATH=a..b[:step], as in engine.options.cpu_offload_gb=50..75 or "
            "engine.options.gpu_memory_utilization=0.90..0.97:0.01",
        )


@dataclass(frozen=True, slots=True)
class Sweep:
    """`values` as they are written in the recipe: with the decimals of first, last and step."""

    path: str
    values: tuple[str, ...]

    def assignments(self) -> Iterator[str]:
        """One `--set` for each value."""
        yield from (f"{self.path}={value}" for value in self.values)


@dataclass(frozen=True, slots=True)
class Step:
    """One value and its answer, None where nothing can be computed."""

    value: str
    answer: FitResult | None

    @property
    def result(self) -> object:
        """What the launch comes to, whatever was asked."""
        if self.answer is None:
            return None
        plan, host = self.answer.plan, self.answer.plan.host
        return self.answer.verdict, plan.hbm.kv_cache_gib, host.offloaded_gib, host.engram_gib, plan.max_model_len


def read_sweep(text: str) -> Sweep:
    """The sweep of a command line; the last value is part of it. Raises NotSweepError."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise NotSweepError(text, "not PATH=a..b[:step]")
    first, last = Decimal(match["first"]), Decimal(match["last"])
    step = Decimal(match["step"] or "1")
    if match["step"] is None and "." in match["first"] + match["last"]:
        raise NotSweepError(text, "fractions need a step")
    if step <= 0 or last < first:
        raise NotSweepError(text, "the step must be above 0, and b not below a")
    count = int((last - first) / step) + 1
    if count > MOST_STEPS:
        raise NotSweepError(text, f"{count} steps, and {MOST_STEPS} at most")
    return Sweep(match["path"], tuple(f"{first + index * step:f}" for index in range(count)))
