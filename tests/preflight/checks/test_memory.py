from dataclasses import replace

from gb300serve.fit.model import GraceMemory, host_verdict
from gb300serve.host.missing import Missing
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
        f"refused: one request of 1,048,576 tokens needs {needed:.2f} GiB of KV cache, and {left:.2f} GiB is left "
        f"({found.plan.basis})"
    )
    assert said(launched(answer=found), "PRE030") == [("error", message, HINT)]
    short = replace(found, plan=replace(found.plan, verdict="short"))
    assert said(launched(answer=short), "PRE030")[0][1].startswith("short: one request")
    unknown = replace(found.plan, hbm=replace(found.plan.hbm, kv_cache_gib=None))
    assert "and less is left" in said(launched(answer=replace(found, plan=unknown)), "PRE030")[0][1]


def test_it_fits_or_nobody_asks() -> None:
    assert said(launched(), "PRE030") == []
    assert said(launched(answer=memory(offload=40.0), container={"gpus": None}), "PRE030") == []
    assert said(station(), "PRE030") == []


def test_another_gpu_has_another_total() -> None:
    weights = memory().plan.hbm.weights_gib
    message = f"{weights:.1f} GiB of weights stay on the GPU, and NVIDIA H200 has 139.8 GiB"
    assert said(launched(host(gpus=(H200,))), "PRE030") == [("error", message, HINT)]
    larger = replace(H200, name="NVIDIA X", memory=300_000 * MIB, reserved=0)
    assert said(launched(host(gpus=(larger,)), answer=memory(offload=40.0)), "PRE030") == []
    a_little_smaller = replace(GB300, name="NVIDIA X", memory=240_000 * MIB, reserved=0)
    ((_, said_of_it, _),) = said(launched(host(gpus=(a_little_smaller,))), "PRE030")
    assert said_of_it.startswith("on NVIDIA X with 234.4 GiB ")
    assert said_of_it.endswith("GiB are left for the KV cache, and one request of 1,048,576 tokens needs 2.20")


def test_overhead_that_nobody_measured() -> None:
    plan = memory().plan
    unknown = replace(memory(), plan=replace(plan, verdict="unknown", hbm=replace(plan.hbm, overhead_gib=None)))
    larger = replace(GB300, memory=270_000 * MIB, reserved=0)
    assert said(launched(host(gpus=(larger,)), answer=unknown), "PRE030") == []
    assert said(launched(answer=unknown), "PRE032") == [
        ("note", "not checked: whether it fits the GPU's memory", f"{HINT} says why")
    ]


def test_host_memory() -> None:
    host_side = memory().plan.host
    low, high = host_side.resident_gib, host_side.resident_bound_gib
    ((severity, message, _),) = said(available(100.0), "PRE031")
    assert severity == "error"
    assert message == (
        f"refused: {low:.0f} to {high:.0f} GiB are to be held, 100 GiB are available (MemAvailable) and 20 should stay "
        "free"
    )
    assert said(available(high), "PRE031")[0][1].startswith("short: ")
    assert said(available(494.5), "PRE031") == []
    refused = available(100.0).release
    assert refused is not None
    assert said(launched(host(memory=Missing("x")), answer=refused.memory), "PRE031") == []


def test_memory_is_only_spoken_of_with_a_gpu() -> None:
    assert said(launched(container={"gpus": None}), "PRE032") == []
    assert said(station(), "PRE032") == said(launched(), "PRE032") == []
