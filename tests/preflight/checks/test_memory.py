from dataclasses import replace

from gb300serve.core.values import Missing
from gb300serve.fit.hardware import GraceMemory, gpu_with_total, host_verdict
from gb300serve.preflight.subject import PreflightSubject
from tests.support.hosts import GB300, MIB, host, launched, memory, said, station

H200 = replace(GB300, name="NVIDIA H200", memory=143771 * MIB, reserved=615 * MIB)
HINT = "gb300serve fit deepseek-v4.1-flash/v14"


def available(gib: float) -> PreflightSubject:
    """A launch on a host with so much memory available."""
    grace, found = GraceMemory(gib, "MemAvailable"), memory()
    return launched(answer=replace(found, grace=grace, host_verdict=host_verdict(found.plan.host, grace)))


def test_the_kv_cache_is_too_small() -> None:
    found = memory(offload=40.0)
    assert found.plan.verdict == "refused"
    left, needed = found.plan.hbm.kv_cache_gib, found.plan.needed_gib
    message = (
        f"refused: one request of 1,048,576 tokens needs {needed:.2f} GiB of KV cache, but {left:.2f} GiB is left "
        f"({found.plan.basis})"
    )
    assert said(launched(answer=found), "PRE030") == [("error", message, HINT)]
    short = replace(found, plan=replace(found.plan, verdict="short"))
    assert said(launched(answer=short), "PRE030")[0][1].startswith("short: one request")
    unknown = replace(found.plan, hbm=replace(found.plan.hbm, kv_cache_gib=None))
    assert "but less is left" in said(launched(answer=replace(found, plan=unknown)), "PRE030")[0][1]


def test_it_fits_or_nobody_asks() -> None:
    assert said(launched(), "PRE030") == []
    assert said(launched(answer=memory(offload=40.0), container={"gpus": None}), "PRE030") == []
    assert said(station(), "PRE030") == []


def test_weights_that_another_gpu_cannot_hold() -> None:
    found = memory()
    small = replace(found, plan=replace(found.plan, verdict="refused", weights_fit=False), gpu=gpu_with_total(139.8))
    weights = found.plan.hbm.weights_gib
    message = f"{weights:.1f} GiB of weights stay on a GPU with 139.8 GiB"
    assert said(launched(host(gpus=(H200,)), answer=small), "PRE030") == [("error", message, HINT)]


def test_overhead_that_nobody_measured() -> None:
    plan = memory().plan
    unknown = replace(memory(), plan=replace(plan, verdict="unknown", hbm=replace(plan.hbm, overhead_gib=None)))
    larger = replace(GB300, memory=270_000 * MIB, reserved=0)
    assert said(launched(host(gpus=(larger,)), answer=unknown), "PRE030") == []
    assert said(launched(answer=unknown), "PRE032") == [
        ("note", "not checked: whether it fits the GPU's memory", f"{HINT} explains why")
    ]


def test_host_memory() -> None:
    ((severity, message, _),) = said(available(100.0), "PRE031")
    assert severity == "error"
    assert message == (
        "refused: the launch needs 380.0 GiB of Grace memory, but 100.0 GiB are available (MemAvailable): "
        "lower cpu_offload_gb"
    )
    assert said(available(380.0), "PRE031")[0][1].startswith("short: ")
    assert said(available(400.0), "PRE031") == []
    refused = available(100.0).release
    assert refused is not None
    assert said(launched(host(memory=Missing("x")), answer=refused.memory), "PRE031") == []


def test_a_hook_that_may_abort() -> None:
    found = memory()
    plan = replace(found.plan, host=replace(found.plan.host, needed_gib=463.75, margin_gib=3.0, floor_gib=10.0))
    said_at = {}
    for gib in (460.0, 466.0, 470.0):
        grace = GraceMemory(gib, "MemAvailable")
        answer = replace(found, plan=plan, grace=grace, host_verdict=host_verdict(plan.host, grace))
        said_at[gib] = [(severity, text[:8]) for severity, text, _ in said(launched(answer=answer), "PRE031")]
    assert said_at == {460.0: [("error", "refused:")], 466.0: [("warning", "needs 46")], 470.0: []}


def test_memory_is_only_spoken_of_with_a_gpu() -> None:
    assert said(launched(container={"gpus": None}), "PRE032") == []
    assert said(station(), "PRE032") == said(launched(), "PRE032") == []
