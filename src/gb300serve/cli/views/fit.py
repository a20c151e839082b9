"""The memory fit on the terminal: a table and a bar for each memory, and the basis of the figures."""

from collections.abc import Iterator, Sequence

from gb300serve.app.fit import Fitted, WrittenSizes
from gb300serve.cli.views import diagnostics
from gb300serve.cli.views.diagnostics import table
from gb300serve.fit.learned import LearnedOverhead
from gb300serve.fit.memory import shape_of
from gb300serve.fit.request import MemoryRequest
from gb300serve.fit.result import FitResult, RecordedBoot, Sweep, SweepStep, repeated_steps

WIDTH = 64


def written_lines(written: WrittenSizes) -> Iterator[str]:
    """What was written into the recipe, before the fit result."""
    yield written.diff or f"{written.file} states these sizes already"
    yield ""


def lines(fitted: Fitted) -> Iterator[str]:
    """The whole fit result."""
    result = fitted.result
    yield f"{fitted.name} on one {fitted.gpu.name if fitted.gpu else 'unknown GPU'}: {_headline(fitted)}"
    if result is not None:
        yield ""
        yield from _hbm(result)
        yield ""
        yield from _host(result)
        yield ""
        yield from _bars(result)
        yield ""
        yield from _basis_lines(result)
        yield from _nearest(result)
    if fitted.remarks:
        yield ""
        yield from diagnostics.text_lines(fitted.remarks)


def _headline(fitted: Fitted) -> str:
    result = fitted.result
    if result is None:
        return _recorded(fitted.recorded) if fitted.recorded else fitted.verdict
    plan, host = result.plan, result.plan.host
    if not plan.weights_fit:
        weights = f"{plan.hbm.weights_gib:.2f} GiB of weights stay in HBM"
        return f"{fitted.verdict}: {weights}, the GPU has {plan.hbm.total_gib:.2f} GiB"
    if plan.verdict == "refused":
        needed = f"one request of {plan.max_model_len:,} tokens needs {plan.needed_gib:.2f} GiB"
        return f"{fitted.verdict}: {needed}, {_left(result)} left for the KV cache"
    if result.host_verdict in ("refused", "short"):
        wanted = host.peak_gib if host.needed_gib is None else host.needed_gib
        needed = f"needs {wanted:.0f} GiB of Grace memory"
        return f"{fitted.verdict}: {needed}, {result.grace.available_gib:g} GiB available"
    spare = "" if result.margin_gib is None else f", {result.margin_gib:.2f} GiB of KV cache to spare"
    return f"{fitted.verdict}{spare}"


def _recorded(boot: RecordedBoot) -> str:
    size = "" if boot.kv_cache_tokens is None else f", with {boot.kv_cache_tokens:,} tokens in the KV cache"
    return f"fits: this launch was measured{size}; a changed one cannot be computed"


def _left(result: FitResult) -> str:
    left = result.plan.hbm.kv_cache_gib
    return "less is" if left is None else f"{left:.2f} GiB"


def _rows(rows: Sequence[tuple[str, float | int | str | None, str]]) -> Iterator[str]:
    for name, value, note in rows:
        shown = "?" if value is None else f"{value:,}" if isinstance(value, int) else value
        shown = f"{shown:.2f}" if isinstance(shown, float) else shown
        yield f"  {name:<30} {shown:>18}  {note}".rstrip()


def _hbm(result: FitResult) -> Iterator[str]:
    hbm, plan = result.plan.hbm, result.plan
    share = hbm.usable_gib / hbm.total_gib
    residency = plan.residency
    away = residency.grace_expert_gib if residency else plan.host.offloaded_gib
    kept = "in Grace, set by the hook" if residency else "offloaded"
    yield "HBM, GiB"
    yield from _rows(
        (
            ("visible to nvidia-smi", hbm.visible_gib, ""),
            ("total for CUDA", hbm.total_gib, f"{result.gpu.name}, {result.gpu.basis}"),
            ("usable", hbm.usable_gib, f"gpu_memory_utilization {share:.6g}"),
            ("weights in HBM", hbm.weights_gib, f"{hbm.weights_gib + away:.2f} less {away:.2f} {kept}"),
            ("overhead", hbm.overhead_gib, f"{_beside(hbm.overhead_gib)}: {_basis(result)}"),
            *_graphs(result),
            ("KV cache", hbm.kv_cache_gib, _both(result)),
            ("one request at full length", plan.needed_gib, f"{plan.max_model_len:,} tokens"),
            ("tokens in the KV cache", plan.kv_cache_tokens, ""),
            ("requests at full length", plan.concurrency_at_max_len, ""),
        )
    )


def _graphs(result: FitResult) -> Iterator[tuple[str, float, str]]:
    graphs = result.plan.graphs
    if graphs is not None:
        yield "  of which CUDA graphs", graphs.gib, f"{graphs.basis}: {', '.join(graphs.boots)}"


def _beside(overhead_gib: float | None) -> str:
    """Contents of the overhead. Without speculation, the checkpoint's drafter is not loaded."""
    is_negative = overhead_gib is not None and overhead_gib < 0
    return "activations, graphs, buffers" + (", minus weights that are not loaded" if is_negative else "")


def _basis(result: FitResult) -> str:
    return "unknown" if result.plan.hbm.kv_cache_gib is None else result.plan.basis


def _both(result: FitResult) -> str:
    """The basis, with the computed figure next to a measured one."""
    computed = result.computed.hbm.kv_cache_gib
    if result.measured_gib is None or computed is None:
        return _basis(result)
    return f"measured; computed {computed:.2f}"


def _host(result: FitResult) -> Iterator[str]:
    host, moved = result.plan.host, result.plan.offload.moved
    free = result.grace.available_gib
    kinds = ", ".join(dict.fromkeys(parameter.name.rpartition(".")[2] for parameter in moved))
    held, note = host.measured_shared_gb, "shared memory; the record does not state GB or GiB"
    measured = [("resident, measured", float(held), note)] if held else []
    yield "Grace, GiB"
    yield from _rows(
        (
            ("requested", float(host.requested_gib), "cpu_offload_gb"),
            ("offloaded", host.offloaded_gib, f"{len(moved)} whole parameters: {kinds}" if moved else "nothing"),
            ("Engram", host.engram_gib, ""),
            ("resident", host.resident_gib, f"{host.basis}; {host.least_gib:.2f} without rounding"),
            *measured,
            *_hook_rows(result),
            ("MemAvailable", free, result.grace.basis),
            ("left", host.left_gib(free), _left_note(result)),
        )
    )


def _hook_rows(result: FitResult) -> Iterator[tuple[str, float, str]]:
    host = result.plan.host
    if result.plan.residency is not None:
        yield "experts in Grace", result.plan.residency.grace_expert_gib, "set by the hook, whatever the offload is"
        yield "peak while experts move", host.peak_gib, "originals and their copies"
    if host.needed_gib is not None:
        spread = f", boots differ by {host.margin_gib:g}" if host.margin_gib else ""
        yield (
            "needed before the launch",
            host.needed_gib,
            f"peak, engine and {host.floor_gib:g} that must stay free{spread}",
        )
    if host.measured_left_gib is not None:
        yield "left, measured", host.measured_left_gib, "at the end of re-homing"


def _left_note(result: FitResult) -> str:
    host = result.plan.host
    return f"at the peak; the hook aborts below {host.floor_gib:g}" if host.floor_gib else ""


def _bars(result: FitResult) -> Iterator[str]:
    hbm, host = result.plan.hbm, result.plan.host
    cache, overhead = hbm.kv_cache_gib or 0.0, hbm.overhead_gib or 0.0
    total = max(hbm.visible_gib or hbm.total_gib, hbm.weights_gib + max(cache, 0.0) + overhead)
    yield f"HBM    [{bar((('#', hbm.weights_gib), ('=', overhead), ('~', cache)), total)}]"
    weights = host.least_gib - host.engram_gib
    parts = (("#", weights), ("E", host.engram_gib), ("r", host.resident_gib - host.least_gib))
    yield f"Grace  [{bar(parts, max(result.grace.available_gib, host.resident_gib))}]"
    yield "       # weights  = overhead  ~ KV cache  E Engram  r rounding  . free"


def bar(parts: Sequence[tuple[str, float]], total: float) -> str:
    """Each part to scale, at least one character for a part above 0, `.` for the rest."""
    drawn, end, filled = "", 0.0, 0
    for character, size in parts:
        end += max(size, 0.0)
        until = min(max(round(WIDTH * end / total), filled + (size > 0)), WIDTH)
        drawn += character * (until - filled)
        filled = until
    return drawn + "." * (WIDTH - filled)


def _basis_lines(result: FitResult) -> Iterator[str]:
    plan, computed = result.plan, result.computed
    if plan.basis == "measured":
        yield f"measured: {', '.join(plan.boots)} logged this KV cache with exactly these settings"
    left = computed.hbm.kv_cache_gib
    if left is None:
        return
    residency, constant = computed.residency, computed.constant
    away = residency.grace_expert_gib if residency else computed.host.offloaded_gib
    if computed.boots and constant is not None:
        yield (
            f"{computed.basis}: {computed.hbm.usable_gib:.2f} usable + {away:.2f} "
            f"{'in Grace' if residency else 'offloaded'} - {constant.gib:.2f} = {left:.2f}; {constant.gib:.2f} is from "
            f"{', '.join(computed.boots)}{f', with {constant.adjustment}' if constant.adjustment else ''}"
        )
    else:
        yield f"{computed.basis}: kv_cache_memory_bytes sets the size, independent of gpu_memory_utilization"


def _nearest(result: FitResult) -> Iterator[str]:
    if not result.nearest:
        return
    yield ""
    yield "nearest settings that fit"
    for change in result.nearest:
        plan = change.plan
        setting, left = f"{change.option} {change.value}", plan.hbm.kv_cache_gib or 0.0
        yield f"  {setting:<30} offloads {plan.host.offloaded_gib:.2f}, KV cache {left:.2f} ({plan.basis})"


def sweep_lines(sweep: Sweep, steps: Sequence[SweepStep]) -> Iterator[str]:
    """One row per step; `=` marks a step with the same launch as the step above."""
    head = (sweep.path.rpartition(".")[2], "requested", "offloaded", "KV cache", "requests", "resident", "verdict", "")
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
        f"{plan.host.least_gib:.1f}-{plan.host.resident_gib:.1f}",
        step.result.verdict,
        "=" if same else "",
    )


def lesson_lines(lesson: LearnedOverhead, saved_in: str, request: MemoryRequest) -> Iterator[str]:
    """The learned overhead, and whether it applies to the settings of `request`."""
    figures = lesson.boot.figures
    moved = f"{figures['offloaded_gib']:.2f} offloaded, " if figures["offloaded_gib"] else ""
    left = f"{figures['kv_cache_gib']:.2f} GiB of KV cache"
    yield f"{lesson.boot.name}: {moved}{left}: the overhead constant is {lesson.constant_gib:.2f}"
    if (host_left := figures.get("host_left_gib")) is not None:
        yield f"the hook left {host_left:.2f} GiB of host memory at the end of re-homing"
    yield f"saved in {saved_in}, for {lesson.gpu.name} with {lesson.gpu.total_gib:.2f} GiB"
    shape = shape_of(request)
    changed = ((name, value) for name, value in lesson.depends_on.items() if shape[name] != value)
    other = [f"{name} {value} (here {shape[name]})" for name, value in changed]
    if other:
        yield f"does not apply to these settings: measured with {', '.join(other)}"
