import pytest

from gb300serve.simulator.engine.settings import SimulatorEnvironment, memory_of
from tests.support.simulated import changed, settings

UNKNOWN = SimulatorEnvironment(model="")


def test_a_measured_release_is_as_measured() -> None:
    plan = memory_of(settings())
    assert (plan.basis, plan.boots, plan.kv_cache_tokens) == ("measured", ("v14",), 2_321_223)


def test_an_unknown_model_leaves_what_is_left() -> None:
    plan = memory_of(settings(("/model", "--gpu-memory-utilization", "0.5"), UNKNOWN))
    assert plan.verdict == "fits"
    assert plan.hbm.kv_cache_gib == pytest.approx(0.5 * 249.8136 - 16 - 8, abs=0.01)
    assert plan.kv_cache_tokens is not None
    assert plan.concurrency_at_max_len == pytest.approx(plan.kv_cache_tokens / 1_048_576)


def test_an_unknown_model_can_be_too_large_as_well() -> None:
    plan = memory_of(settings(("/model", "--gpu-memory-utilization", "0.1"), UNKNOWN))
    assert (plan.verdict, plan.estimated_max_model_len) == ("refused", 32_144)
    auto = memory_of(settings(("/model", "--gpu-memory-utilization", "0.1", "--max-model-len", "auto"), UNKNOWN))
    assert (auto.verdict, auto.max_model_len) == ("fits", 32_144)


def test_a_context_as_long_as_fits() -> None:
    words = tuple({"1048576": "auto"}.get(word, word) for word in changed("--cpu-offload-gb", "55"))
    assert memory_of(settings(words)).max_model_len == 123_264
