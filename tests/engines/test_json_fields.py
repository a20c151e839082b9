from gb300serve.core.values import Value, WrittenFloat
from gb300serve.engines.tables import table
from tests.engines.samples import DAY_ZERO


def told(key: str, value: Value) -> list[tuple[tuple[str | int, ...], str, str, str | None]]:
    problems = table("vllm", DAY_ZERO).check(key, value)
    return [(problem.path[1:], problem.code, problem.message, problem.hint) for problem in problems]


def test_unknown_key_gets_the_right_name() -> None:
    assert told("engram_config", {"cpu_ofload": True}) == [
        (("cpu_ofload",), "OPT006", "engram_config has no 'cpu_ofload'", "write 'cpu_offload'")
    ]


def test_unknown_key_far_from_all_lists_them() -> None:
    assert told("engram_config", {"x": 1}) == [
        (("x",), "OPT006", "engram_config has no 'x'", "it takes cpu_offload, dp_shared_memory, embedding_across_dp")
    ]


def test_types_choices_and_bounds() -> None:
    written: dict[str, Value] = {
        "method": "dsparc",
        "num_speculative_tokens": 0,
        "enforce_eager": "yes",
        "draft_tensor_parallel_size": "1",
        "suffix_decoding_min_token_prob": True,
    }
    assert told("speculative_config", written) == [
        (
            ("method",),
            "OPT003",
            'speculative_config.method is "dsparc", which the engine does not know',
            "write dspark",
        ),
        (
            ("num_speculative_tokens",),
            "OPT007",
            "speculative_config.num_speculative_tokens is 0, not greater than 0",
            "write a number greater than 0",
        ),
        (("enforce_eager",), "OPT002", 'speculative_config.enforce_eager is "yes", not true or false or null', None),
        (
            ("draft_tensor_parallel_size",),
            "OPT002",
            'speculative_config.draft_tensor_parallel_size is "1", not a whole number or null',
            None,
        ),
        (
            ("suffix_decoding_min_token_prob",),
            "OPT002",
            "speculative_config.suffix_decoding_min_token_prob is true, not a number",
            None,
        ),
    ]  # fmt: skip


def test_what_the_engine_takes() -> None:
    assert told("speculative_config", {"method": "dspark", "model": None, "num_speculative_tokens": 5}) == []
    assert told("kernel_config", {"moe_backend": "FlashInfer-TRTLLM", "enable_flashinfer_autotune": None}) == []
    assert told("compilation_config", {"mode": 3, "cudagraph_mode": "PIECEWISE", "pass_config": {}}) == []
    assert told("speculative_config", {"suffix_decoding_min_token_prob": WrittenFloat("0.1")}) == []


def test_options_without_a_configuration_class_take_any_key() -> None:
    assert told("hf_overrides", {"anything": 1}) == []
