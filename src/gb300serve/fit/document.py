"""The answer as `fit --json` prints it, `gb300serve.fit/1`. Sizes in GiB, rounded to four decimals."""

from collections.abc import Iterable, Sequence
from typing import Any

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.fit.answer import FitResult
from gb300serve.fit.demand import Demand
from gb300serve.fit.model import GB300
from gb300serve.fit.sweep import Step

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
