"""What has to be said beside the figures: on what they do not stand, and what may undo them."""

from collections.abc import Iterator

from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.fit.answer import FitResult
from gb300serve.fit.checkpoint import MeasuredBoot
from gb300serve.fit.host import FREE_GIB, NEVER_HELD_GIB
from gb300serve.fit.overhead import demand_at, shape_of

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
