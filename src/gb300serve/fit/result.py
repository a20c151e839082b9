"""The answer as `fit --json` prints it, `gb300serve.fit/1`. Sizes in GiB, rounded to four decimals."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil, floor
from typing import Any

from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.core.errors import CommandLineError
from gb300serve.fit.checkpoint import Checkpoint, MeasuredBoot
from gb300serve.fit.memory import demand_at, memory_plan, shape_of
from gb300serve.fit.model import FREE_GIB, GB300, NEVER_HELD_GIB, STATION, Grace, MemoryPlan, Verdict, host_verdict
from gb300serve.fit.request import Demand

# The highest share of the GPU that ever booted: the driver and CUDA's own context need the rest.
HIGHEST_UTILIZATION = 0.97
MOST_OFFLOAD_GIB = 400


@dataclass(frozen=True, slots=True)
class Nearest:
    """One option changed, and the plan that it gives."""

    option: str
    value: int | float
    plan: MemoryPlan


def nearest(checkpoint: Checkpoint, demand: Demand, grace: Grace) -> tuple[Nearest, ...]:
    """The smallest change of each option that makes the launch fit; options that cannot are left out."""
    tries = (_more_offload(demand), _more_utilization(demand), _less_context(checkpoint, demand), _less_offload(demand))
    found = (next(_fitting(checkpoint, ladder, grace), None) for ladder in tries)
    return tuple(one for one in found if one is not None)


Rung = tuple[str, int | float, Demand]


def _fitting(checkpoint: Checkpoint, ladder: Iterator[Rung], grace: Grace) -> Iterator[Nearest]:
    for option, value, demand in ladder:
        plan = memory_plan(checkpoint, demand, look_up=False)
        # A shortened context is the engine's own advice: it boots with what it needs and no more.
        enough = ("fits", "short") if option == "max_model_len" else ("fits",)
        if plan.verdict in enough and host_verdict(plan.host, grace) == "fits":
            yield Nearest(option, value, plan)


def _more_offload(demand: Demand) -> Iterator[Rung]:
    if demand.offload_backend in ("auto", "uva"):
        for asked in range(floor(demand.cpu_offload_gb) + 1, MOST_OFFLOAD_GIB):
            yield "cpu_offload_gb", asked, replace(demand, cpu_offload_gb=asked)


def _less_offload(demand: Demand) -> Iterator[Rung]:
    for asked in range(min(ceil(demand.cpu_offload_gb) - 1, MOST_OFFLOAD_GIB), 0, -1):
        yield "cpu_offload_gb", asked, replace(demand, cpu_offload_gb=asked)


def _more_utilization(demand: Demand) -> Iterator[Rung]:
    highest = round(100 * HIGHEST_UTILIZATION)
    for percent in range(floor(100 * demand.gpu_memory_utilization + 1e-6) + 1, highest + 1):
        yield "gpu_memory_utilization", percent / 100, replace(demand, gpu_memory_utilization=percent / 100)


def _less_context(checkpoint: Checkpoint, demand: Demand) -> Iterator[Rung]:
    # A boot of this memory tells its own limit: 123,264 tokens where the arithmetic would say 129,088.
    asked = memory_plan(checkpoint, demand)
    length = asked.estimated_max_model_len or asked.max_model_len // 2
    while length >= checkpoint.kv_cache.block_tokens:
        if length < asked.max_model_len:
            yield "max_model_len", length, replace(demand, max_model_len=length)
        length //= 2


_WORST: tuple[Verdict, ...] = ("refused", "unknown", "short", "fits")


@dataclass(frozen=True, slots=True)
class FitResult:
    """`plan` is what is shown: measured where a boot of exactly this memory was, else `computed`."""

    plan: MemoryPlan
    computed: MemoryPlan
    demand: Demand
    grace: Grace
    host_verdict: Verdict
    nearest: tuple[Nearest, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worse of both memories."""
        return min(self.plan.verdict, self.host_verdict, key=_WORST.index)

    @property
    def measured_gib(self) -> float | None:
        """The KV cache that a boot of exactly this memory logged."""
        return self.plan.hbm.kv_cache_gib if self.plan.basis == "measured" else None

    @property
    def margin_gib(self) -> float | None:
        """KV cache beyond one request of the full length."""
        left = self.plan.hbm.kv_cache_gib
        return None if left is None else left - self.plan.needed_gib


def answer(checkpoint: Checkpoint, demand: Demand, *, changed: bool = False, grace: Grace = STATION) -> FitResult:
    """`changed`: by `--set`, so that no boot was of exactly this launch and everything is computed."""
    computed = memory_plan(checkpoint, demand, GB300, grace.available_gib, look_up=False)
    plan = computed if changed else memory_plan(checkpoint, demand, GB300, grace.available_gib)
    return FitResult(plan, computed, demand, grace, host_verdict(plan.host, grace))


def advised(checkpoint: Checkpoint, found: FitResult) -> FitResult:
    """The answer with the nearest settings that would fit, where these do not: hundreds of plans, 40 ms."""
    if found.verdict not in ("refused", "short"):
        return found
    return replace(found, nearest=nearest(checkpoint, found.demand, found.grace))


_OFFLOAD = "engine.options.cpu_offload_gb"


def remarks(answer: FitResult, boots: tuple[MeasuredBoot, ...]) -> Iterator[Diagnostic]:
    """Of an answer with figures; `boots` are those that were measured with this checkpoint."""
    yield from _basis(answer, boots)
    yield from _unmatched(answer)
    yield from _weights(answer)
    yield from _host(answer)


OVERHEAD_UNKNOWN = "FIT001"
CONSTANT_ASSUMED = "FIT002"
MATCHES_NOTHING = "FIT003"
WEIGHTS_TOO_LARGE = "FIT004"
HOST_SHORT = "FIT005"
SIZES_UNKNOWN = "FIT006"
ANOTHER_MACHINE = "FIT007"
OFFLOAD_IGNORED = "FIT008"


def _basis(answer: FitResult, boots: tuple[MeasuredBoot, ...]) -> Iterator[Diagnostic]:
    plan, demand = answer.plan, answer.demand
    if plan.hbm.kv_cache_gib is None:
        message = "no boot of this checkpoint was measured: what the engine needs beside its weights is not known"
        hint = "gb300serve fit REF --calibrate boot.log learns it from a boot, `memory.overhead_gib` states it"
        yield diagnostic(OVERHEAD_UNKNOWN, message, hint)
    elif plan.basis == "assumed" and plan.boots:
        asked = shape_of(demand)
        said = ", ".join(f"{name} {_shown(value)}" for name, value in asked.items() if _differs(name, answer, boots))
        message = f"nothing was measured with these settings{f' ({said})' if said else ''}: the nearest boots stand in"
        hint = "expect GiB of difference; --calibrate boot.log learns the constant from the first boot"
        yield diagnostic(CONSTANT_ASSUMED, message, hint)


def _differs(name: str, answer: FitResult, boots: tuple[MeasuredBoot, ...]) -> bool:
    """Whether none of the boots behind the answer has this setting."""
    behind = [boot for boot in boots if boot.name in answer.plan.boots]
    asked = shape_of(answer.demand)
    return bool(behind) and all(shape_of(demand_at(boot))[name] != asked[name] for boot in behind)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return "; ".join(f"{name} {text}" for name, text in value)
    return "none" if value is None else f"{value:,}" if type(value) is int else str(value)


def _unmatched(answer: FitResult) -> Iterator[Diagnostic]:
    for pattern in answer.plan.offload.unmatched if answer.demand.offloads else ():
        message = f"`{pattern}` matches no parameter: the engine moves nothing for it, without a word"
        yield diagnostic(MATCHES_NOTHING, message, None, path="engine.options.cpu_offload_params")


def _weights(answer: FitResult) -> Iterator[Diagnostic]:
    plan = answer.plan
    if not plan.weights_fit:
        message = f"{plan.hbm.weights_gib:.2f} GiB of weights stay on a GPU of {plan.hbm.visible_gib:.2f} GiB"
        yield diagnostic(WEIGHTS_TOO_LARGE, message, "offload more of them")


def _host(answer: FitResult) -> Iterator[Diagnostic]:
    host, grace = answer.plan.host, answer.grace
    held = f"{host.resident_gib:.1f} to {host.resident_bound_gib:.1f} GiB of host memory"
    if answer.host_verdict == "refused":
        message = f"{held}: more than {min(grace.available_gib, NEVER_HELD_GIB):g} GiB never held, the kernel kills it"
        yield diagnostic(HOST_SHORT, message, "lower cpu_offload_gb", path=_OFFLOAD, severity="error")
    elif answer.host_verdict == "short":
        message = f"{held}, and less than {FREE_GIB:g} GiB of {grace.available_gib:g} may be left"
        hint = "pinned tensors can be rounded up to a power of two: lower cpu_offload_gb, or measure a boot"
        yield diagnostic(HOST_SHORT, message, hint, path=_OFFLOAD)


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


SCHEMA = "gb300serve.fit/1"


def document(name: str, demand: Demand, answer: FitResult | None, diagnostics: Iterable[Diagnostic]) -> dict[str, Any]:
    """The whole object; figures are null where they are not known."""
    plan = answer.plan if answer else None
    return {
        "schema": SCHEMA,
        "verdict": answer.verdict if answer else "unknown",
        "hbm": {
            "visible_gib": _gib(GB300.visible_gib),
            "usable_gib": _gib(demand.gpu_memory_utilization * GB300.total_gib or None),
            "weights_gib": _gib(plan.hbm.weights_gib if plan else None),
            "overhead_gib": _gib(plan.hbm.overhead_gib if plan else None),
            "kv_cache_gib": _gib(plan.hbm.kv_cache_gib if plan else None),
        },
        "host": {
            "asked_gib": _gib(demand.cpu_offload_gb),
            "offloaded_gib": _gib(plan.host.offloaded_gib if plan else None),
            "engram_gib": _gib(plan.host.engram_gib if plan else None),
            "resident_gib": _gib(plan.host.resident_gib if plan else None),
            "available_gib": _gib(answer.grace.available_gib if answer else None),
        },
        "kv_cache_tokens": plan.kv_cache_tokens if plan else None,
        "concurrency_at_max_len": _gib(plan.concurrency_at_max_len if plan else None),
        "basis": plan.basis if plan else "assumed",
        "diagnostics": [one.as_json() for one in diagnostics],
        "details": {"recipe": name} | (_details(answer) if answer else {}),
    }


def _details(answer: FitResult) -> dict[str, Any]:
    plan = answer.plan
    return {
        "max_model_len": plan.max_model_len,
        "needed_gib": _gib(plan.needed_gib),
        "margin_gib": _gib(answer.margin_gib),
        "estimated_max_model_len": plan.estimated_max_model_len,
        "measured_kv_cache_gib": _gib(answer.measured_gib),
        "computed_kv_cache_gib": _gib(answer.computed.hbm.kv_cache_gib),
        "stands_on": list(dict.fromkeys((*plan.boots, *answer.computed.boots))),
        "resident_bound_gib": _gib(plan.host.resident_bound_gib),
        "resident_measured_gb": plan.host.measured_shared_gb,
        "available_basis": answer.grace.basis,
        "nearest": [
            {
                "path": f"engine.options.{one.option}",
                "value": one.value,
                "kv_cache_gib": _gib(one.plan.hbm.kv_cache_gib),
                "offloaded_gib": _gib(one.plan.host.offloaded_gib),
                "basis": one.plan.basis,
            }
            for one in answer.nearest
        ],
    }


def sweep_document(path: str, steps: Sequence[Step]) -> list[dict[str, Any]]:
    """One object a step; `same_as_before` marks a step that changes nothing against the one above it."""
    return [
        {
            "path": path,
            "value": step.value,
            "verdict": step.answer.verdict if step.answer else "unknown",
            "asked_gib": _gib(step.answer.plan.host.asked_gib if step.answer else None),
            "offloaded_gib": _gib(step.answer.plan.host.offloaded_gib if step.answer else None),
            "resident_gib": _gib(step.answer.plan.host.resident_gib if step.answer else None),
            "kv_cache_gib": _gib(step.answer.plan.hbm.kv_cache_gib if step.answer else None),
            "kv_cache_tokens": step.answer.plan.kv_cache_tokens if step.answer else None,
            "basis": step.answer.plan.basis if step.answer else "assumed",
            "same_as_before": same,
        }
        for step, same in zip(steps, equal_steps(steps), strict=True)
    ]


def equal_steps(steps: Sequence[Step]) -> list[bool]:
    """For each step, whether it is the launch of the step before it, but for what was asked."""
    results = [step.result for step in steps]
    return [index > 0 and results[index] == results[index - 1] for index in range(len(steps))]


def _gib(value: float | None) -> float | None:
    return None if value is None else round(float(value), 4)
