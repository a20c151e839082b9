import pytest

from gb300serve.engines.parse import ArgumentRefusedError
from gb300serve.simulator.engine.settings import SimulatorEnvironment
from gb300serve.simulator.engine.vllm.boot import refused_script
from gb300serve.simulator.engine.vllm.refusals import late_refusal, refusal
from tests.support.simulated import DAY_ZERO, STARTED, V14, boot_of, boot_script, changed, exit_code, said, settings

REFUSED = {
    "no tool parser": (
        changed("--tool-call-parser"),
        "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser",
        "bad-argument-value",
    ),
    "unknown tool parser": (
        changed("--tool-call-parser", "kimi_k4"),
        "KeyError: 'invalid tool call parser: kimi_k4 (chose from { ",
        "unknown-parser",
    ),
    "unknown reasoning parser": (
        changed("--reasoning-parser", "deepseek"),
        "KeyError: \"Reasoning parser 'deepseek' not found. Available parsers: ",
        "unknown-parser",
    ),
    "port": ((*V14, "--port", "70000"), "OverflowError: bind(): port must be 0-65535.", None),
    "context": (
        changed("--max-model-len", "2M"),
        "Value error, User-specified max_model_len (2097152) is greater than the derived max_model_len "
        "(max_position_embeddings=1048576.0 ",
        "context-exceeds-model",
    ),
    "utilisation in percent": (
        changed("--gpu-memory-utilization", "97"),
        "  Input should be less than or equal to 1 [type=less_than_equal, input_value=97.0, input_type=float]",
        "bad-argument-value",
    ),
    "no utilisation": (
        changed("--gpu-memory-utilization", "0"),
        "  Input should be greater than 0 [type=greater_than, input_value=0.0, input_type=float]",
        "bad-argument-value",
    ),
    "negative offload": (
        changed("--cpu-offload-gb", "-5"),
        "  Input should be greater than or equal to 0 [type=greater_than_equal, input_value=-5.0, input_type=float]",
        "bad-argument-value",
    ),
    "no sequences": (
        changed("--max-num-seqs", "0"),
        "  Input should be greater than or equal to 1 [type=greater_than_equal, input_value=0, input_type=int]",
        "bad-argument-value",
    ),
    "small budget": (
        changed("--max-num-batched-tokens", "4"),
        "Value error, max_num_batched_tokens (4) must be greater than or equal to max_num_seqs (16).",
        "bad-argument-value",
    ),
    "threshold": (
        changed("--long-prefill-token-threshold", "2000000"),
        "Value error, long_prefill_token_threshold (2000000) cannot be greater than the max_model_len (1048576).",
        "bad-argument-value",
    ),
    "mtp": (
        changed("--speculative-config", '{"method":"mtp","num_speculative_tokens":3}'),
        "Use speculative method 'dspark' instead of 'mtp'.",
        "unsupported-on-engine",
    ),
    "no draft tokens": (
        changed("--speculative-config", '{"method":"dspark","num_speculative_tokens":0}'),
        "  Input should be greater than 0 [type=greater_than, input_value=0, input_type=int]",
        "bad-argument-value",
    ),
    "unknown field": (
        changed("--speculative-config", '{"method":"dspark","num_spec":5}'),
        "  Unexpected keyword argument [type=unexpected_keyword_argument, input_value=5, input_type=int]",
        "bad-argument-value",
    ),
    "short row": (
        changed(
            "--speculative-config",
            '{"method":"dspark","num_speculative_tokens":5,"num_speculative_tokens_per_batch_size":[[1,4]]}',
        ),
        "  Field required [type=missing, input_value=(1, 4), input_type=tuple]",
        "bad-argument-value",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_configuration_refuses(name: str) -> None:
    words, text, reason = REFUSED[name]
    events = boot_script(words)
    diagnosis = boot_of(events).result()
    assert any(text in line for line in said(events))
    assert (exit_code(events), diagnosis.state) == (1, "failed")
    assert reason in (None, diagnosis.reason)
    # Before anything is loaded.
    assert events[-1].at < 21


def test_v14_is_taken() -> None:
    assert refusal(settings()) is None
    assert late_refusal(settings()) is None


def test_a_long_context_can_be_forced() -> None:
    forced = SimulatorEnvironment(env={"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"})
    assert refusal(settings(changed("--max-model-len", "2M"), forced)) is None


def test_a_model_that_no_mount_holds_is_taken_for_a_name() -> None:
    mounted = SimulatorEnvironment(mounts=("/model", "/root/.cache/vllm"))
    assert refusal(settings(V14, mounted)) is None
    found = refusal(settings(changed("--model", "/models/x"), mounted))
    assert found is not None
    assert found.error.startswith("huggingface_hub.errors.HFValidationError: Repo id must be in the form ")
    assert "'/models/x'" in found.error


def test_tables_on_a_model_without_them() -> None:
    found = refusal(settings(("/model", "--engram-config", "{}"), SimulatorEnvironment(model="")))
    assert found is None
    given = refusal(settings(("/model", "--engram-config", '{"cpu_offload":true}'), SimulatorEnvironment(model="")))
    assert given is not None
    assert "EngramConfig requires a model with supported Engram embeddings" in given.error


@pytest.mark.parametrize(
    ("tiers", "text"),
    [
        ("[]", "num_speculative_tokens_per_batch_size must not be empty."),
        ("[[0,4,5]]", "Batch-size range (0, 4) must be positive."),
        ("[[4,1,5]]", "Batch-size range start must be <= end for (4, 1)."),
        ("[[1,4,-1]]", "num_speculative_tokens_per_batch_size values must be >= 0."),
        ("[[1,4,5],[4,16,1]]", "Batch-size ranges must be non-overlapping and sorted."),
        (
            "[[2,4,5]]",
            "The first batch-size range must start at 1 so every runtime batch size has a defined schedule.",
        ),
    ],
)
def test_a_schedule_is_refused_only_after_the_cache_is_sized(tiers: str, text: str) -> None:
    drafts = f'{{"method":"dspark","num_speculative_tokens":5,"num_speculative_tokens_per_batch_size":{tiers}}}'
    events = boot_script(changed("--speculative-config", drafts))
    assert any(line.endswith(f"ValueError: {text}") for line in said(events))
    assert any("GPU KV cache size: " in line for line in said(events))
    assert exit_code(events) == 1


def test_schedules_that_the_engine_takes() -> None:
    for tiers in ("[[5,16,1],[1,4,5]]", "[[1,2,5],[8,16,1]]", "[[1,4,9]]", "[[1,4,0]]"):
        drafts = f'{{"method":"dspark","num_speculative_tokens":5,"num_speculative_tokens_per_batch_size":{tiers}}}'
        assert late_refusal(settings(changed("--speculative-config", drafts), DAY_ZERO)) is None


def test_words_that_the_parser_refuses_end_with_two() -> None:
    with pytest.raises(ArgumentRefusedError) as refused:
        settings((*V14, "--offload-backnd", "uva"))
    events = refused_script(refused.value, STARTED)
    assert said(events) == [
        "usage: vllm serve [model_tag] [options]",
        "vllm: error: unrecognized arguments: --offload-backnd uva",
    ]
    assert exit_code(events) == 2
    assert boot_of(events).result().reason == "unknown-argument"
