"""The memory answer in the terminal: a table, a bar for each memory, and what it stands on. Plain characters."""

from collections.abc import Iterator, Sequence

from gb300serve.app.fit import Fitted
from gb300serve.cli.views import diagnostics
from gb300serve.cli.views.table import table
from gb300serve.fit.learned import LearnedOverhead
from gb300serve.fit.memory import shape_of
from gb300serve.fit.model import GB300
from gb300serve.fit.request import MemoryRequest
from gb300serve.fit.result import FitResult, Sweep, SweepStep, repeated_steps

WIDTH = 64


def lines(fitted: Fitted) -> Iterator[str]:
    """The whole answer."""
    found = fitted.answer
    yield f"{fitted.name} on one GB300: {_headline(fitted)}"
    if found is not None:
        yield ""
        yield from _hbm(found)
        yield ""
        yield from _host(found)
        yield ""
        yield from _bars(found)
        yield ""
        yield from _stands(found)
        yield from _nearest(found)
    if fitted.remarks:
        yield ""
        yield from diagnostics.text_lines(fitted.remarks)


def _headline(fitted: Fitted) -> str:
    found = fitted.answer
    if found is None:
        return fitted.verdict
    plan, host = found.plan, found.plan.host
    if not plan.weights_fit:
        stay = f"{plan.hbm.weights_gib:.2f} GiB of weights stay"
        return f"{fitted.verdict}: {stay}, and the GPU has {plan.hbm.visible_gib:.2f}"
    if plan.verdict == "refused":
        needed = f"one request of {plan.max_model_len:,} tokens needs {plan.needed_gib:.2f} GiB"
        return f"{fitted.verdict}: {needed}, and {_left(found)} is left for the KV cache"
    if found.host_verdict in ("refused", "short"):
        held = f"{host.resident_gib:.0f} to {host.resident_bound_gib:.0f} GiB of Grace are asked for"
        return f"{fitted.verdict}: {held}, and {found.grace.available_gib:g} are there"
    spare = "" if found.margin_gib is None else f", {found.margin_gib:.2f} GiB of KV cache to spare"
    return f"{fitted.verdict}{spare}"


def _left(found: FitResult) -> str:
    left = found.plan.hbm.kv_cache_gib
    return "less than that" if left is None else f"{left:.2f} GiB"


def _rows(rows: Sequence[tuple[str, float | int | str | None, str]]) -> Iterator[str]:
    for name, value, note in rows:
        shown = "?" if value is None else f"{value:,}" if isinstance(value, int) else value
        shown = f"{shown:.2f}" if isinstance(shown, float) else shown
        yield f"  {name:<30} {shown:>18}  {note}".rstrip()


def _hbm(found: FitResult) -> Iterator[str]:
    hbm, plan = found.plan.hbm, found.plan
    share = hbm.usable_gib / GB300.total_gib
    whole = hbm.weights_gib + plan.host.offloaded_gib
    yield "HBM, GiB"
    yield from _rows(
        (
            ("visible to nvidia-smi", hbm.visible_gib, ""),
            ("total of CUDA", GB300.total_gib, ""),
            ("usable", hbm.usable_gib, f"gpu_memory_utilization {share:.6g}"),
            ("weights that stay", hbm.weights_gib, f"{whole:.2f} less {plan.host.offloaded_gib:.2f} moved"),
            ("overhead", hbm.overhead_gib, f"{_beside(hbm.overhead_gib)}: {_basis(found)}"),
            ("KV cache", hbm.kv_cache_gib, _both(found)),
            ("one request at full length", plan.needed_gib, f"{plan.max_model_len:,} tokens"),
            ("tokens in the KV cache", plan.kv_cache_tokens, ""),
            ("requests at full length", plan.concurrency_at_max_len, ""),
        )
    )


def _beside(overhead_gib: float | None) -> str:
    """What the overhead is. A boot without speculation leaves the checkpoint's drafter out of the GPU."""
    less = overhead_gib is not None and overhead_gib < 0
    return "activations, graphs, buffers" + (", less weights that are not loaded" if less else "")


def _basis(found: FitResult) -> str:
    return "unknown" if found.plan.hbm.kv_cache_gib is None else found.plan.basis


def _both(found: FitResult) -> str:
    """Measured and computed side by side."""
    computed = found.computed.hbm.kv_cache_gib
    if found.measured_gib is None or computed is None:
        return _basis(found)
    return f"measured; computed {computed:.2f}"


def _host(found: FitResult) -> Iterator[str]:
    host, moved = found.plan.host, found.plan.offload.moved
    least, most, free = host.resident_gib, host.resident_bound_gib, found.grace.available_gib
    kinds = ", ".join(dict.fromkeys(one.name.rpartition(".")[2] for one in moved))
    held = host.measured_shared_gb
    yield "Grace, GiB"
    yield from _rows(
        (
            ("asked", float(host.requested_gib), "cpu_offload_gb"),
            ("moved", host.offloaded_gib, f"{len(moved)} whole parameters: {kinds}" if moved else "nothing"),
            ("Engram", host.engram_gib, ""),
            ("resident", f"{least:.2f} to {most:.2f}", "the upper when each tensor is rounded up to a power of two"),
            *(
                [("resident, measured", float(held), "shared memory, GB or GiB: its record does not say")]
                if held
                else []
            ),
            ("MemAvailable", free, found.grace.basis),
            ("left", f"{free - most:.2f} to {free - least:.2f}", ""),
        )
    )


def _bars(found: FitResult) -> Iterator[str]:
    hbm, host = found.plan.hbm, found.plan.host
    cache, overhead = hbm.kv_cache_gib or 0.0, hbm.overhead_gib or 0.0
    total = max(hbm.visible_gib, hbm.weights_gib + max(cache, 0.0) + overhead)
    yield f"HBM    [{bar((('#', hbm.weights_gib), ('=', overhead), ('~', cache)), total)}]"
    rounding = host.resident_bound_gib - host.resident_gib
    parts = (("#", host.offloaded_gib), ("E", host.engram_gib), ("?", rounding))
    yield f"Grace  [{bar(parts, max(found.grace.available_gib, host.resident_bound_gib))}]"
    yield "       # weights  = overhead  ~ KV cache  E Engram  ? rounding, if any  . free"


def bar(parts: Sequence[tuple[str, float]], total: float) -> str:
    """Each part to scale, at least one character for what is there, `.` for the rest."""
    drawn, end, filled = "", 0.0, 0
    for character, size in parts:
        end += max(size, 0.0)
        until = min(max(round(WIDTH * end / total), filled + (size > 0)), WIDTH)
        drawn += character * (until - filled)
        filled = until
    return drawn + "." * (WIDTH - filled)


def _stands(found: FitResult) -> Iterator[str]:
    plan, computed = found.plan, found.computed
    if plan.basis == "measured":
        yield f"measured: {', '.join(plan.boots)} logged this KV cache with exactly these settings"
    left = computed.hbm.kv_cache_gib
    if left is None:
        return
    constant = computed.hbm.usable_gib + computed.host.offloaded_gib - left
    if computed.boots:
        yield (
            f"{computed.basis}: {computed.hbm.usable_gib:.2f} usable + {computed.host.offloaded_gib:.2f} moved - "
            f"{constant:.2f} = {left:.2f}; the {constant:.2f} come from {', '.join(computed.boots)}"
        )
    else:
        yield f"{computed.basis}: kv_cache_memory_bytes says how much, whatever the utilisation"


def _nearest(found: FitResult) -> Iterator[str]:
    if not found.nearest:
        return
    yield ""
    yield "nearest settings that fit"
    for one in found.nearest:
        plan = one.plan
        setting, left = f"{one.option} {one.value}", plan.hbm.kv_cache_gib or 0.0
        yield f"  {setting:<30} moves {plan.host.offloaded_gib:.2f}, KV cache {left:.2f} ({plan.basis})"


def sweep_lines(sweep: Sweep, steps: Sequence[SweepStep]) -> Iterator[str]:
    """One row a step; `=` marks a step that comes to the same launch as the one above it."""
    head = (sweep.path.rpartition(".")[2], "asked", "moved", "KV cache", "requests", "resident", "verdict", "")
    yield from table(head, [_row(step, same=same) for step, same in zip(steps, repeated_steps(steps), strict=True)])


def _row(step: SweepStep, *, same: bool) -> tuple[str, ...]:
    if step.result is None:
        return (step.value, "?", "?", "?", "?", "?", "unknown", "")
    plan = step.result.plan
    requests = plan.concurrency_at_max_len
    return (
        step.value,
        f"{plan.host.requested_gib:g}",
        f"{plan.host.offloaded_gib:.2f}",
        "?" if plan.hbm.kv_cache_gib is None else f"{plan.hbm.kv_cache_gib:.2f}",
        "-" if requests is None else f"{requests:.2f}",
        f"{plan.host.resident_gib:.1f}-{plan.host.resident_bound_gib:.1f}",
        step.result.verdict,
        "=" if same else "",
    )


def lesson_lines(lesson: LearnedOverhead, kept_in: str, demand: MemoryRequest) -> Iterator[str]:
    """What was learned, for whoever watches, and whether `demand` is of the shape that it speaks for."""
    figures = lesson.boot.figures
    moved = f"{figures['offloaded_gib']:.2f} moved, " if figures["offloaded_gib"] else ""
    left = f"{figures['kv_cache_gib']:.2f} GiB of KV cache"
    yield f"{lesson.boot.name}: {moved}{left}: the constant is {lesson.constant_gib:.2f}"
    if lesson.has_unexpected_offload:
        computed = f"{lesson.computed_offload_gib:.2f} GiB"
        yield f"by its sizes it should have moved {computed}: is it a boot of this checkpoint?"
    yield f"kept in {kept_in}"
    asked = shape_of(demand)
    other = [
        f"{name} {value} (here {asked[name]})" for name, value in lesson.depends_on.items() if asked[name] != value
    ]
    if other:
        yield f"it speaks for other settings than these: {', '.join(other)}"
