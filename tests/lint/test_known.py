import pytest

from gb300serve.lint.known import (
    divides_draft,
    drafter_block,
    reasoning_parser,
    runner_v2_ignores,
    tried,
    tuning_store,
)


@pytest.mark.parametrize("version", [None, "0.32.0", "0.1.dev20904+g179dd0fa9", "mine"])
def test_older_engines_tune_into_their_own_cache(version: str | None) -> None:
    assert tuning_store(version) is None


@pytest.mark.parametrize("version", ["0.33.0", "0.33.1", "0.34.0+cu130"])
def test_newer_engines_tune_elsewhere(version: str) -> None:
    store = tuning_store(version)
    assert store is not None
    assert store == ("/root/.cache/flashinfer", "VLLM_FLASHINFER_AUTOTUNE_CACHE_DIR")


def test_the_day_zero_build_is_known_to_offload() -> None:
    assert not runner_v2_ignores("0.1.dev20904+g179dd0fa9")
    assert not runner_v2_ignores(None)
    assert runner_v2_ignores("0.31.0")


def test_drafters() -> None:
    assert drafter_block("deepseek-ai/DeepSeek-V4.1-Flash") == 5
    assert drafter_block("acme/Quince") is None
    assert divides_draft("0.30.0+cpu")
    assert not divides_draft("0.33.0")


@pytest.mark.parametrize(
    ("name", "parser"),
    [
        ("DeepSeek-V4.1-Flash", "deepseek_v41"),
        ("DeepSeek-V4-Lite", "deepseek_v4"),
        ("Qwen3.8-27B-FP8", "qwen3"),
        ("GLM-5.3-Flash-NVFP4", "glm45"),
        ("MiniMax-M3-NVFP4", "minimax_m3"),
        ("Qwen3-Coder-Next-FP8", None),
        ("Quince-9B", None),
        ("", None),
    ],
)
def test_models_that_reason_have_a_parser(name: str, parser: str | None) -> None:
    assert reasoning_parser(name) == parser


def test_records_speak_of_values() -> None:
    records = {record.option or record.variable: record for record in tried()}
    assert records["long_prefill_token_threshold"].is_about(2048)
    assert not records["long_prefill_token_threshold"].is_about(0)
    assert not records["long_prefill_token_threshold"].is_about(6144)
    assert not records["long_prefill_token_threshold"].is_about("2048")
    assert records["language_model_only"].is_about(True)
    assert not records["language_model_only"].is_about(1)
    assert {record.severity for record in tried()} <= {"error", "warning", "note"}
