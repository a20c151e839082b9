"""The fit result: verdict, nearest settings, diagnostics, sweeps, and the document `gb300serve.fit/1`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil, floor
from typing import Any

from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.core.errors import CommandLineError
from gb300serve.fit.checkpoint import GIB, Checkpoint, MeasuredBoot
from gb300serve.fit.hardware import (
    FREE_GIB,
    GB300,
    STATION,
    GraceMemory,
    Hbm,
    Verdict,
    host_verdict,
    is_close_to_abort,
)
from gb300serve.fit.memory import EXPLAINED_SPREAD_GIB, MemoryPlan, memory_plan, request_of_boot, shape_of
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


def nearest_settings(
    checkpoint: Checkpoint, request: MemoryRequest, grace: GraceMemory, gpu: Hbm = GB300
) -> tuple[NearestSetting, ...]:
    """For each option, the smallest change that makes the launch fit, if there is one."""
    more = range(floor(request.cpu_offload_gb) + 1, MAX_OFFLOAD_GIB)
    less = range(min(ceil(request.cpu_offload_gb) - 1, MAX_OFFLOAD_GIB), 0, -1)
    candidates = (
        _with_offload(request, more if request.offload_backend in ("auto", "uva") else ()),
        _more_utilization(request),
        _less_context(checkpoint, request, gpu),
        _with_offload(request, less),
    )
    first_fits = (next(_fitting(checkpoint, settings, grace, gpu), None) for settings in candidates)
    return tuple(filter(None, first_fits))


Candidate = tuple[str, int | float, MemoryRequest]


def _fitting(
    checkpoint: Checkpoint, candidates: Iterator[Candidate], grace: GraceMemory, gpu: Hbm
) -> Iterator[NearestSetting]:
    for option, value, request in candidates:
        plan = memory_plan(checkpoint, request, gpu, look_up=False)
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


def _less_context(checkpoint: Checkpoint, request: MemoryRequest, gpu: Hbm) -> Iterator[Candidate]:
    # A measured boot of this request states its own limit: 123,264 tokens where the computed limit is 129,088.
    plan = memory_plan(checkpoint, request, gpu)
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
    gpu: Hbm = GB300
    nearest: tuple[NearestSetting, ...] | None = None
    """The settings that fit if these do not; None if they were not computed."""

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
    checkpoint: Checkpoint,
    request: MemoryRequest,
    gpu: Hbm = GB300,
    *,
    changed: bool = False,
    grace: GraceMemory = STATION,
) -> FitResult:
    """Compare the request with both memories. `changed` (by `--set`): no boot measured this launch, so compute it."""
    computed = memory_plan(checkpoint, request, gpu, look_up=False)
    plan = computed if changed else memory_plan(checkpoint, request, gpu)
    return FitResult(plan, computed, request, grace, host_verdict(plan.host, grace), gpu)


def with_nearest_settings(checkpoint: Checkpoint, result: FitResult) -> FitResult:
    """The result, with the nearest settings that fit if these do not. It computes hundreds of plans (40 ms)."""
    if result.verdict not in ("refused", "short"):
        return result
    return replace(result, nearest=nearest_settings(checkpoint, result.request, result.grace, result.gpu))


_OFFLOAD = "engine.options.cpu_offload_gb"


def fit_diagnostics(result: FitResult, boots: tuple[MeasuredBoot, ...]) -> Iterator[Diagnostic]:
    """Diagnostics of a result; `boots` are those that were measured with this checkpoint."""
    plan = result.plan
    yield from _basis(result, boots)
    for pattern in plan.offload.unmatched if result.request.offloads else ():
        message = f"`{pattern}` matches no parameter: the engine silently offloads nothing for it"
        yield diagnostic(MATCHES_NOTHING, message, None, path="engine.options.cpu_offload_params")
    if not plan.weights_fit:
        message = f"{plan.hbm.weights_gib:.2f} GiB of weights remain on a GPU with {plan.hbm.total_gib:.2f} GiB"
        yield diagnostic(WEIGHTS_TOO_LARGE, message, "offload more weights")
    yield from _residency(result)
    yield from _fixed_cache(result)
    yield from _host(result)


OVERHEAD_UNKNOWN = "FIT001"
CONSTANT_ASSUMED = "FIT002"
MATCHES_NOTHING = "FIT003"
WEIGHTS_TOO_LARGE = "FIT004"
HOST_SHORT = "FIT005"
SIZES_UNKNOWN = "FIT006"
ANOTHER_MACHINE = "FIT007"
OFFLOAD_IGNORED = "FIT008"
HOOK_RESIDENCY = "FIT009"
FIXED_CACHE_TOO_LARGE = "FIT010"
BOOTS_DISAGREE = "FIT011"
TOTAL_UNKNOWN = "FIT012"


def _basis(result: FitResult, boots: tuple[MeasuredBoot, ...]) -> Iterator[Diagnostic]:
    plan, request = result.plan, result.request
    if plan.hbm.kv_cache_gib is None:
        message = "no boot of this checkpoint was measured: the engine's overhead is unknown"
        hint = "learn it from a boot (`fit REF --calibrate boot.log`), or set memory.overhead_gib"
        yield diagnostic(OVERHEAD_UNKNOWN, message, hint)
    elif plan.constant is not None and plan.constant.spread_gib > EXPLAINED_SPREAD_GIB:
        yield _disagreement(result, boots)
    elif plan.basis == "assumed" and plan.boots:
        settings = shape_of(request).items()
        listed = ", ".join(f"{name} {_shown(value)}" for name, value in settings if _differs(name, result, boots))
        message = f"no boot was measured with these settings{f' ({listed})' if listed else ''}: using the nearest boots"
        hint = "may be off by several GiB; learn the overhead from the first boot: --calibrate boot.log"
        yield diagnostic(CONSTANT_ASSUMED, message, hint)


def _disagreement(result: FitResult, boots: tuple[MeasuredBoot, ...]) -> Diagnostic:
    constant = result.plan.constant
    names = constant.boots if constant else ()
    logged = ", ".join(f"{boot.name} {boot.figures['kv_cache_gib']:.2f}" for boot in boots if boot.name in names)
    spread = constant.spread_gib if constant else 0.0
    message = f"boots with these settings differ by {spread:.2f} GiB for an unknown reason (KV cache in GiB: {logged})"
    hint = "the figure is their mean; compare what else differs between these boots"
    return diagnostic(BOOTS_DISAGREE, message, hint)


def _residency(result: FitResult) -> Iterator[Diagnostic]:
    plan = result.plan
    if plan.residency is None:
        return
    if not plan.hook_starts:
        message = (
            f"the hook cannot start: with {plan.host.offloaded_gib:.2f} GiB offloaded, too little HBM is free before "
            "its first layer"
        )
        yield diagnostic(HOOK_RESIDENCY, message, "raise cpu_offload_gb", path=_OFFLOAD, severity="error")
        return
    message = (
        f"residency set by the hook: {plan.residency.grace_expert_gib:.2f} GiB of experts in Grace and "
        f"{plan.residency.hbm_expert_gib:.2f} GiB in HBM, whatever cpu_offload_gb is ({plan.residency.basis})"
    )
    yield diagnostic(HOOK_RESIDENCY, message, None, path=_OFFLOAD)


def _fixed_cache(result: FitResult) -> Iterator[Diagnostic]:
    fixed, limit = result.request.kv_cache_memory_bytes, result.plan.kv_limit_gib
    if fixed is None or limit is None or fixed <= limit * GIB:
        return
    message = f"kv_cache_memory_bytes requests {fixed / GIB:.2f} GiB, but the GPU has at most {limit:.2f} GiB left"
    hint = f"write at most {floor(limit * GIB)}, or remove it: utilization does not limit this size"
    yield diagnostic(FIXED_CACHE_TOO_LARGE, message, hint, path="engine.options.kv_cache_memory_bytes")


def _differs(name: str, result: FitResult, boots: tuple[MeasuredBoot, ...]) -> bool:
    used = [boot for boot in boots if boot.name in result.plan.boots]
    wanted = shape_of(result.request)[name]
    return bool(used) and all(shape_of(request_of_boot(boot))[name] != wanted for boot in used)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return "; ".join(" ".join(map(str, item)) if isinstance(item, tuple) else str(item) for item in value) or "none"
    return "none" if value is None else f"{value:,}" if type(value) is int else str(value)


def _host(result: FitResult) -> Iterator[Diagnostic]:
    host, grace = result.plan.host, result.grace
    if result.host_verdict == "refused":
        hint = "the kernel kills the engine without a line in its log" if host.needed_gib is None else None
        yield diagnostic(HOST_SHORT, host_sentence(result), hint, path=_OFFLOAD, severity="error")
    elif result.host_verdict == "short":
        free = f"less than {FREE_GIB:g} of {grace.available_gib:g} GiB may remain free"
        hint = "each pinned tensor occupies a power of two: lower cpu_offload_gb"
        yield diagnostic(HOST_SHORT, f"needs {host.peak_gib:.1f} GiB of Grace memory: {free}", hint, path=_OFFLOAD)
    elif is_close_to_abort(host, grace):
        hint = "stop programs that hold memory, reboot the host, or lower cpu_offload_gb"
        yield diagnostic(HOST_SHORT, host_sentence(result), hint, path=_OFFLOAD)


def host_sentence(result: FitResult) -> str:
    """The Grace memory that is needed and available, and what to change, or what is left where the launch may fail."""
    host, grace = result.plan.host, result.grace
    needed = f"{host.peak_gib if host.needed_gib is None else host.needed_gib:.1f} GiB of Grace memory"
    needed += f" (boots differ by {host.margin_gib:g} GiB)" if host.margin_gib else ""
    available = f"{grace.available_gib:.1f} GiB are available ({grace.basis.partition(':')[0]})"
    if result.host_verdict == "refused":
        return f"the launch needs {needed}, but {available}: {_less_host_memory(result)}"
    if host.needed_gib is None:
        return f"needs {needed}, {available}; {FREE_GIB:g} GiB should stay free"
    left = f"about {host.left_gib(grace.available_gib):.1f} GiB would be left at the peak"
    return f"needs {needed}, {available}: {left}" + (
        f", and the hook aborts below {host.floor_gib:g}" if host.floor_gib else ""
    )


def _less_host_memory(result: FitResult) -> str:
    """What makes the launch fit into the host's memory."""
    requested = result.request.cpu_offload_gb
    if result.nearest is None:
        return "lower cpu_offload_gb"
    smaller = (near.value for near in result.nearest if near.option == "cpu_offload_gb" and near.value < requested)
    value = next(smaller, None)
    if value is not None:
        return f"lower cpu_offload_gb from {requested:g} to {value:g}"
    if result.grace == STATION:
        return "no smaller cpu_offload_gb fits"
    return "stop programs that hold memory, because no smaller cpu_offload_gb fits"


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


@dataclass(frozen=True, slots=True)
class RecordedBoot:
    """What the recipe records of a boot of exactly this launch, where nothing can be computed."""

    kv_cache_tokens: int | None


def fit_document(
    name: str,
    request: MemoryRequest,
    found: FitResult | RecordedBoot | None,
    diagnostics: Iterable[Diagnostic],
    gpu: Hbm | None = GB300,
) -> dict[str, Any]:
    """The whole object: sizes in GiB with four decimals, null if unknown."""
    recorded = found if isinstance(found, RecordedBoot) else None
    result = found if isinstance(found, FitResult) else None
    plan = result.plan if result else None
    hbm, host = (plan.hbm, plan.host) if plan else (None, None)
    return {
        "schema": SCHEMA,
        "verdict": result.verdict if result else "fits" if recorded else "unknown",
        "hbm": {
            "visible_gib": _rounded(gpu.visible_gib if gpu else None),
            "usable_gib": _rounded(request.gpu_memory_utilization * gpu.total_gib or None) if gpu else None,
            **_figures(hbm, "weights_gib", "overhead_gib", "kv_cache_gib"),
        },
        "host": {
            "asked_gib": _rounded(request.cpu_offload_gb),
            **_figures(host, "offloaded_gib", "engram_gib", "resident_gib"),
            "available_gib": _rounded(result.grace.available_gib) if result else None,
        },
        "kv_cache_tokens": plan.kv_cache_tokens if plan else recorded and recorded.kv_cache_tokens,
        **_figures(plan, "concurrency_at_max_len"),
        "basis": plan.basis if plan else "measured" if recorded else "assumed",
        "diagnostics": [diagnostic.as_json() for diagnostic in diagnostics],
        "details": {"recipe": name} | _gpu_details(gpu) | (_details(result) if result else {}),
    }


def _gpu_details(gpu: Hbm | None) -> dict[str, Any]:
    return {"gpu": gpu.name, "total_gib": _rounded(gpu.total_gib), "total_basis": gpu.basis} if gpu else {}


def _details(result: FitResult) -> dict[str, Any]:
    plan = result.plan
    host, graphs, residency = plan.host, plan.graphs, plan.residency
    return {
        "max_model_len": plan.max_model_len,
        **_figures(plan, "needed_gib"),
        **_figures(result, "margin_gib"),
        "estimated_max_model_len": plan.estimated_max_model_len,
        "measured_kv_cache_gib": _rounded(result.measured_gib),
        "computed_kv_cache_gib": _rounded(result.computed.hbm.kv_cache_gib),
        "stands_on": list(dict.fromkeys((*plan.boots, *result.computed.boots))),
        "resident_least_gib": _rounded(host.least_gib),
        "resident_bound_gib": _rounded(host.peak_gib),
        "resident_measured_gb": host.measured_shared_gb,
        "host_basis": host.basis,
        "host_needed_gib": _rounded(host.needed_gib),
        "host_left_gib": _rounded(host.left_gib(result.grace.available_gib)),
        "host_left_measured_gib": _rounded(host.measured_left_gib),
        "residency": residency
        and {
            "hbm_expert_gib": residency.hbm_expert_gib,
            "grace_expert_gib": residency.grace_expert_gib,
            "basis": residency.basis,
        },
        "graphs": graphs and {"gib": _rounded(graphs.gib), "basis": graphs.basis, "stands_on": list(graphs.boots)},
        "constant_gib": _rounded(plan.constant.gib if plan.constant else None),
        "spread_gib": _rounded(plan.constant.spread_gib if plan.constant else None),
        "adjustment": plan.constant.adjustment if plan.constant else "",
        "available_basis": result.grace.basis,
        "nearest": [
            {
                "path": f"engine.options.{setting.option}",
                "value": setting.value,
                **_figures(setting.plan.hbm, "kv_cache_gib"),
                **_figures(setting.plan.host, "offloaded_gib"),
                "basis": setting.plan.basis,
            }
            for setting in result.nearest or ()
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
