"""The fit result: verdict, nearest settings, diagnostics, sweeps, and the document `gb300serve.fit/1`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil, floor
from typing import Any

from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.core.errors import CommandLineError
from gb300serve.fit.checkpoint import Checkpoint, MeasuredBoot
from gb300serve.fit.memory import (
    FREE_GIB,
    GB300,
    NEVER_HELD_GIB,
    STATION,
    GraceMemory,
    MemoryPlan,
    Verdict,
    host_verdict,
    memory_plan,
    request_of_boot,
    shape_of,
)
from gb300serve.fit.request import MemoryRequest

# The highest utilization that ever booted: the driver and the CUDA context need the rest.
HIGHEST_UTILIZATION = 0.97
MAX_OFFLOAD_GIB = 400


@dataclass(frozen=True, slots=True)
class NearestSetting:
    """One changed option and the resulting plan."""

    option: str
    value: int | float
    plan: MemoryPlan


def nearest_settings(checkpoint: Checkpoint, request: MemoryRequest, grace: GraceMemory) -> tuple[NearestSetting, ...]:
    """For each option, the smallest change that makes the launch fit, if there is one."""
    more = range(floor(request.cpu_offload_gb) + 1, MAX_OFFLOAD_GIB)
    less = range(min(ceil(request.cpu_offload_gb) - 1, MAX_OFFLOAD_GIB), 0, -1)
    candidates = (
        _with_offload(request, more if request.offload_backend in ("auto", "uva") else ()),
        _more_utilization(request),
        _less_context(checkpoint, request),
        _with_offload(request, less),
    )
    first_fits = (next(_fitting(checkpoint, settings, grace), None) for settings in candidates)
    return tuple(filter(None, first_fits))


Candidate = tuple[str, int | float, MemoryRequest]


def _fitting(checkpoint: Checkpoint, candidates: Iterator[Candidate], grace: GraceMemory) -> Iterator[NearestSetting]:
    for option, value, request in candidates:
        plan = memory_plan(checkpoint, request, look_up=False)
        # The engine itself suggests a shorter context, and boots with exactly the memory that it needs.
        accepted = ("fits", "short") if option == "max_model_len" else ("fits",)
        if plan.verdict in accepted and host_verdict(plan.host, grace) == "fits":
            yield NearestSetting(option, value, plan)


def _with_offload(request: MemoryRequest, sizes: Iterable[int]) -> Iterator[Candidate]:
    for gigabytes in sizes:
        yield "cpu_offload_gb", gigabytes, replace(request, cpu_offload_gb=gigabytes)


def _more_utilization(request: MemoryRequest) -> Iterator[Candidate]:
    highest = round(100 * HIGHEST_UTILIZATION)
    for percent in range(floor(100 * request.gpu_memory_utilization + 1e-6) + 1, highest + 1):
        yield "gpu_memory_utilization", percent / 100, replace(request, gpu_memory_utilization=percent / 100)


def _less_context(checkpoint: Checkpoint, request: MemoryRequest) -> Iterator[Candidate]:
    # A measured boot of this request states its own limit: 123,264 tokens where the computed limit is 129,088.
    plan = memory_plan(checkpoint, request)
    length = plan.estimated_max_model_len or plan.max_model_len // 2
    while length >= checkpoint.kv_cache.block_tokens:
        if length < plan.max_model_len:
            yield "max_model_len", length, replace(request, max_model_len=length)
        length //= 2


_WORST_FIRST: tuple[Verdict, ...] = ("refused", "unknown", "short", "fits")


@dataclass(frozen=True, slots=True)
class FitResult:
    """`plan` is the one to show: measured if a boot had exactly this request, else the same as `computed`."""

    plan: MemoryPlan
    computed: MemoryPlan
    request: MemoryRequest
    grace: GraceMemory
    host_verdict: Verdict
    nearest: tuple[NearestSetting, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worse verdict of GPU and host memory."""
        return min(self.plan.verdict, self.host_verdict, key=_WORST_FIRST.index)

    @property
    def measured_gib(self) -> float | None:
        """The KV cache that a boot with exactly this request logged."""
        return self.plan.hbm.kv_cache_gib if self.plan.basis == "measured" else None

    @property
    def margin_gib(self) -> float | None:
        """KV cache that is left after one request of the full length."""
        available = self.plan.hbm.kv_cache_gib
        return None if available is None else available - self.plan.needed_gib


def fit_result(
    checkpoint: Checkpoint, request: MemoryRequest, *, changed: bool = False, grace: GraceMemory = STATION
) -> FitResult:
    """Compare the request with both memories. `changed` (by `--set`): no boot measured this launch, so compute it."""
    computed = memory_plan(checkpoint, request, GB300, grace.available_gib, look_up=False)
    plan = computed if changed else memory_plan(checkpoint, request, GB300, grace.available_gib)
    return FitResult(plan, computed, request, grace, host_verdict(plan.host, grace))


def with_nearest_settings(checkpoint: Checkpoint, result: FitResult) -> FitResult:
    """The result, with the nearest settings that fit if these do not. It computes hundreds of plans (40 ms)."""
    if result.verdict not in ("refused", "short"):
        return result
    return replace(result, nearest=nearest_settings(checkpoint, result.request, result.grace))


_OFFLOAD = "engine.options.cpu_offload_gb"


def fit_diagnostics(result: FitResult, boots: tuple[MeasuredBoot, ...]) -> Iterator[Diagnostic]:
    """Diagnostics of a result; `boots` are those that were measured with this checkpoint."""
    plan = result.plan
    yield from _basis(result, boots)
    for pattern in plan.offload.unmatched if result.request.offloads else ():
        message = f"`{pattern}` matches no parameter: the engine silently offloads nothing for it"
        yield diagnostic(MATCHES_NOTHING, message, None, path="engine.options.cpu_offload_params")
    if not plan.weights_fit:
        message = f"{plan.hbm.weights_gib:.2f} GiB of weights remain on a GPU with {plan.hbm.visible_gib:.2f} GiB"
        yield diagnostic(WEIGHTS_TOO_LARGE, message, "offload more weights")
    yield from _host(result)


OVERHEAD_UNKNOWN = "FIT001"
CONSTANT_ASSUMED = "FIT002"
MATCHES_NOTHING = "FIT003"
WEIGHTS_TOO_LARGE = "FIT004"
HOST_SHORT = "FIT005"
SIZES_UNKNOWN = "FIT006"
ANOTHER_MACHINE = "FIT007"
OFFLOAD_IGNORED = "FIT008"


def _basis(result: FitResult, boots: tuple[MeasuredBoot, ...]) -> Iterator[Diagnostic]:
    plan, request = result.plan, result.request
    if plan.hbm.kv_cache_gib is None:
        message = "no boot of this checkpoint was measured: the engine's overhead is unknown"
        hint = "learn it from a boot (`fit REF --calibrate boot.log`), or set memory.overhead_gib"
        yield diagnostic(OVERHEAD_UNKNOWN, message, hint)
    elif plan.basis == "assumed" and plan.boots:
        settings = shape_of(request).items()
        listed = ", ".join(f"{name} {_shown(value)}" for name, value in settings if _differs(name, result, boots))
        message = f"no boot was measured with these settings{f' ({listed})' if listed else ''}: using the nearest boots"
        hint = "may be off by several GiB; learn the overhead from the first boot: --calibrate boot.log"
        yield diagnostic(CONSTANT_ASSUMED, message, hint)


def _differs(name: str, result: FitResult, boots: tuple[MeasuredBoot, ...]) -> bool:
    used = [boot for boot in boots if boot.name in result.plan.boots]
    wanted = shape_of(result.request)[name]
    return bool(used) and all(shape_of(request_of_boot(boot))[name] != wanted for boot in used)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return "; ".join(f"{name} {text}" for name, text in value)
    return "none" if value is None else f"{value:,}" if type(value) is int else str(value)


def _host(result: FitResult) -> Iterator[Diagnostic]:
    host, grace = result.plan.host, result.grace
    needed = f"needs {host.resident_gib:.1f} to {host.resident_bound_gib:.1f} GiB of host memory"
    if result.host_verdict == "refused":
        limit = min(grace.available_gib, NEVER_HELD_GIB)
        message = f"{needed}; above {limit:g} GiB the kernel kills the engine"
        yield diagnostic(HOST_SHORT, message, "lower cpu_offload_gb", path=_OFFLOAD, severity="error")
    elif result.host_verdict == "short":
        message = f"{needed}: less than {FREE_GIB:g} of {grace.available_gib:g} GiB may remain free"
        hint = "pinned tensors may be rounded up to a power of two: lower cpu_offload_gb, or measure a boot"
        yield diagnostic(HOST_SHORT, message, hint, path=_OFFLOAD)


MAX_STEPS = 1000
_NUMBER = r"-?\d+(?:\.\d+)?"
_RANGE = re.compile(rf"(?P<path>.+)=(?P<first>{_NUMBER})\.\.(?P<last>{_NUMBER})(?::(?P<step>{_NUMBER}))?")


class InvalidSweepError(CommandLineError):
    """The argument is not a valid range."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(
            f"--sweep {text}: {reason}",
            hint="write PATH=a..b[:step], such as engine.options.cpu_offload_gb=50..75 or "
            "engine.options.gpu_memory_utilization=0.90..0.97:0.01",
        )


@dataclass(frozen=True, slots=True)
class Sweep:
    """`values` are written as in a recipe, with the decimals of the first, the last and the step."""

    path: str
    values: tuple[str, ...]

    def assignments(self) -> Iterator[str]:
        """One `--set` for each value."""
        yield from (f"{self.path}={value}" for value in self.values)


@dataclass(frozen=True, slots=True)
class SweepStep:
    """One value and its result, None if it cannot be computed."""

    value: str
    result: FitResult | None

    @property
    def outcome(self) -> object:
        """The figures that two steps are compared by; the requested size is not one of them."""
        if self.result is None:
            return None
        plan, host = self.result.plan, self.result.plan.host
        return self.result.verdict, plan.hbm.kv_cache_gib, host.offloaded_gib, host.engram_gib, plan.max_model_len


def parse_sweep(text: str) -> Sweep:
    """Parse PATH=a..b[:step]; the range includes b. Raises InvalidSweepError."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise InvalidSweepError(text, "not PATH=a..b[:step]")
    first, last = Decimal(match["first"]), Decimal(match["last"])
    step = Decimal(match["step"] or "1")
    if match["step"] is None and "." in match["first"] + match["last"]:
        raise InvalidSweepError(text, "a range of fractions requires a step")
    if step <= 0 or last < first:
        raise InvalidSweepError(text, "the step must be positive, and b at least a")
    count = int((last - first) / step) + 1
    if count > MAX_STEPS:
        raise InvalidSweepError(text, f"{count} steps; the limit is {MAX_STEPS}")
    return Sweep(match["path"], tuple(f"{first + index * step:f}" for index in range(count)))


SCHEMA = "gb300serve.fit/1"


def fit_document(
    name: str, request: MemoryRequest, result: FitResult | None, diagnostics: Iterable[Diagnostic]
) -> dict[str, Any]:
    """The whole object: sizes in GiB with four decimals, null if unknown."""
    plan = result.plan if result else None
    hbm, host = (plan.hbm, plan.host) if plan else (None, None)
    return {
        "schema": SCHEMA,
        "verdict": result.verdict if result else "unknown",
        "hbm": {
            "visible_gib": _rounded(GB300.visible_gib),
            "usable_gib": _rounded(request.gpu_memory_utilization * GB300.total_gib or None),
            **_figures(hbm, "weights_gib", "overhead_gib", "kv_cache_gib"),
        },
        "host": {
            "asked_gib": _rounded(request.cpu_offload_gb),
            **_figures(host, "offloaded_gib", "engram_gib", "resident_gib"),
            "available_gib": _rounded(result.grace.available_gib) if result else None,
        },
        "kv_cache_tokens": plan.kv_cache_tokens if plan else None,
        **_figures(plan, "concurrency_at_max_len"),
        "basis": plan.basis if plan else "assumed",
        "diagnostics": [diagnostic.as_json() for diagnostic in diagnostics],
        "details": {"recipe": name} | (_details(result) if result else {}),
    }


def _details(result: FitResult) -> dict[str, Any]:
    plan = result.plan
    return {
        "max_model_len": plan.max_model_len,
        **_figures(plan, "needed_gib"),
        **_figures(result, "margin_gib"),
        "estimated_max_model_len": plan.estimated_max_model_len,
        "measured_kv_cache_gib": _rounded(result.measured_gib),
        "computed_kv_cache_gib": _rounded(result.computed.hbm.kv_cache_gib),
        "stands_on": list(dict.fromkeys((*plan.boots, *result.computed.boots))),
        **_figures(plan.host, "resident_bound_gib"),
        "resident_measured_gb": plan.host.measured_shared_gb,
        "available_basis": result.grace.basis,
        "nearest": [
            {
                "path": f"engine.options.{setting.option}",
                "value": setting.value,
                **_figures(setting.plan.hbm, "kv_cache_gib"),
                **_figures(setting.plan.host, "offloaded_gib"),
                "basis": setting.plan.basis,
            }
            for setting in result.nearest
        ],
    }


def sweep_document(path: str, steps: Sequence[SweepStep]) -> list[dict[str, Any]]:
    """One object per step; `same_as_before` marks a step with the same outcome as the step before."""
    documents = []
    for step, same in zip(steps, repeated_steps(steps), strict=True):
        plan = step.result.plan if step.result else None
        documents.append(
            {
                "path": path,
                "value": step.value,
                "verdict": step.result.verdict if step.result else "unknown",
                "asked_gib": _rounded(plan.host.requested_gib) if plan else None,
                **_figures(plan.host if plan else None, "offloaded_gib", "resident_gib"),
                **_figures(plan.hbm if plan else None, "kv_cache_gib"),
                "kv_cache_tokens": plan.kv_cache_tokens if plan else None,
                "basis": plan.basis if plan else "assumed",
                "same_as_before": same,
            }
        )
    return documents


def repeated_steps(steps: Sequence[SweepStep]) -> list[bool]:
    """For each step, whether its outcome equals that of the step before."""
    outcomes = [step.outcome for step in steps]
    return [index > 0 and outcome == outcomes[index - 1] for index, outcome in enumerate(outcomes)]


def _figures(source: object, *names: str) -> dict[str, float | None]:
    """These attributes, each null without a source."""
    return {name: None if source is None else _rounded(getattr(source, name)) for name in names}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 4)
