import pytest

from gb300serve.simulator.engine.settings import (
    DEFAULT_MODEL,
    DEFAULT_VERSION,
    SimulatorEnvironment,
    SimulatorEnvironmentError,
    estimate_memory,
    read_environment,
)
from tests.support.simulated import V14, changed, settings

UNKNOWN = SimulatorEnvironment(model="")


def test_a_measured_release_is_as_measured() -> None:
    plan = estimate_memory(settings())
    assert (plan.basis, plan.boots, plan.kv_cache_tokens) == ("measured", ("v14",), 2_321_223)


def test_an_unknown_model_leaves_what_is_left() -> None:
    plan = estimate_memory(settings(("/model", "--gpu-memory-utilization", "0.5"), UNKNOWN))
    assert plan.verdict == "fits"
    assert plan.hbm.kv_cache_gib == pytest.approx(0.5 * 249.8136 - 16 - 8, abs=0.01)
    assert plan.kv_cache_tokens is not None
    assert plan.concurrency_at_max_len == pytest.approx(plan.kv_cache_tokens / 1_048_576)


def test_an_unknown_model_can_be_too_large_as_well() -> None:
    plan = estimate_memory(settings(("/model", "--gpu-memory-utilization", "0.1"), UNKNOWN))
    assert (plan.verdict, plan.estimated_max_model_len) == ("refused", 32_144)
    auto = estimate_memory(settings(("/model", "--gpu-memory-utilization", "0.1", "--max-model-len", "auto"), UNKNOWN))
    assert (auto.verdict, auto.max_model_len) == ("fits", 32_144)


def test_a_context_as_long_as_fits() -> None:
    words = tuple({"1048576": "auto"}.get(word, word) for word in changed("--cpu-offload-gb", "55"))
    assert estimate_memory(settings(words)).max_model_len == 123_264


def test_an_empty_environment() -> None:
    assert read_environment({}) == SimulatorEnvironment(200.0, DEFAULT_VERSION, DEFAULT_MODEL, env={})


def test_everything_that_can_be_said() -> None:
    said = {
        "GB300SERVE_SIM_SPEED": "20000",
        "GB300SERVE_SIM_VERSION": "0.32.0",
        "GB300SERVE_SIM_MODEL": "",
        "GB300SERVE_SIM_FAULT": "host-oom",
        "GB300SERVE_SIM_CACHE": "/cache",
        "GB300SERVE_SIM_BOOT": '{"starting": 5}',
        "GB300SERVE_SIM_MOUNTS": '["/model"]',
        "GB300SERVE_SIM_LISTEN": "8021",
        "GB300SERVE_SIM_SHIMMED": "7",
        "PIN_HOOK": "/w/hook.py",
    }
    assert read_environment(said) == SimulatorEnvironment(
        speed=20000.0,
        version="0.32.0",
        model="",
        fault="host-oom",
        cache="/cache",
        phase_seconds={"starting": 5},
        mounts=("/model",),
        listen=8021,
        shimmed=7,
        env={"PIN_HOOK": "/w/hook.py"},
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [("SPEED", "fast"), ("SPEED", "0"), ("SPEED", "-1"), ("SPEED", "nan"), ("BOOT", "{starting: 5}"), ("MOUNTS", "[")],
)
def test_what_is_wrong_is_named(name: str, text: str) -> None:
    with pytest.raises(SimulatorEnvironmentError, match=f"GB300SERVE_SIM_{name} is"):
        read_environment({f"GB300SERVE_SIM_{name}": text})


def test_only_loopback_is_bound() -> None:
    hosts = {"0.0.0.0": "127.0.0.1", "127.0.0.2": "127.0.0.2", "::": "127.0.0.1", "::1": "::1", "10.0.0.7": "127.0.0.1"}
    assert {host: settings((*V14, "--host", host)).host for host in hosts} == hosts
    assert (settings().host, settings().port, settings().listen_port) == ("127.0.0.1", 8000, 8000)
    assert settings(V14, SimulatorEnvironment(listen=8021)).listen_port == 8021


def test_names() -> None:
    assert settings().served_names == ("dsv41-flash-uva",)
    assert settings(changed("--served-model-name", "a", "b")).served_names == ("a", "b")
    assert settings(changed("--served-model-name")).served_names == ("/model",)
    assert settings((*V14, "--api-key", "k")).api_keys == ("k",)
    assert settings().api_keys == ()


def test_numbers_with_suffixes() -> None:
    assert settings(changed("--max-model-len", "128K")).max_model_len == 131072
    assert settings(changed("--max-model-len", "auto")).max_model_len == 1048576


def test_a_leading_serve_counts_for_nothing() -> None:
    assert settings(("serve", *V14)).options == settings().options


@pytest.mark.parametrize(
    ("model", "visible"),
    [("/model", True), ("/model/sub", True), ("/models", False), ("deepseek-ai/DeepSeek-V4.1-Flash", True)],
)
def test_what_the_mounts_show(model: str, visible: bool) -> None:
    mounted = SimulatorEnvironment(mounts=("/model", "/root/.cache/vllm"))
    assert settings(changed("--model", model), mounted).model_is_visible is visible


def test_an_unknown_checkpoint() -> None:
    with pytest.raises(SimulatorEnvironmentError, match="no checkpoint is called 'a/b'"):
        settings(V14, SimulatorEnvironment(model="a/b"))
