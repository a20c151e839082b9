import pytest

from gb300serve.engines.base import Problem, dotted
from gb300serve.engines.tables import elsewhere, table
from tests.engines.samples import DAY_ZERO


@pytest.mark.parametrize(
    ("key", "right"),
    [
        ("cpu_offload_param", "cpu_offload_params"),
        ("max_num_batch_tokens", "max_num_batched_tokens"),
        ("tensor-parallel-size", "tensor_parallel_size"),
        ("--tensor-parallel-size", "tensor_parallel_size"),
        ("tp", "tensor_parallel_size"),
        ("sc", "speculative_config"),
        ("no_trust_remote_code", "trust_remote_code"),
        ("Max_Model_Len", "max_model_len"),
    ],
)
def test_another_spelling_is_told_the_right_one(key: str, right: str) -> None:
    expected = Problem((key,), "OPT001", f"engine.options has no '{key}' in vllm {DAY_ZERO}", f"write '{right}'")
    assert table("vllm", DAY_ZERO).check(key, 1) == (expected,)


def test_an_option_that_the_build_refuses() -> None:
    (problem,) = table("vllm", DAY_ZERO).check("max_num_partial_prefills", 2)
    advice = "this build refuses it; long_prefill_token_threshold keeps a long prompt from blocking short ones"
    assert (problem.code, problem.hint) == ("OPT001", advice)


@pytest.mark.parametrize(
    ("key", "version", "hint"),
    [
        ("engram_config", "0.29.0", "vllm 0.30.0 and later have it"),
        ("watchdog_config", "0.30.0", "vllm 0.33.0 has it"),
        ("enable_bf16x3_router_gemm", "0.30.0", "vllm up to 0.29.0 has it"),
        ("enable_mamba_fine_grained_prefix_cache", "0.31.0", f"vllm {DAY_ZERO}, 0.30.0 have it"),
        ("no_such_thing_at_all", "0.30.0", None),
    ],
)
def test_the_versions_that_do_have_it(key: str, version: str, hint: str | None) -> None:
    bare = Problem((key,), "OPT001", "not there")
    assert elsewhere(bare, "vllm", key) == Problem((key,), "OPT001", "not there", hint)


def test_an_unknown_key_has_no_words() -> None:
    with pytest.raises(KeyError, match="cpu_offload_param"):
        table("vllm", DAY_ZERO).words("cpu_offload_param", "x")


def test_address_as_diagnostics_print_it() -> None:
    assert dotted(("cpu_offload_params", 0)) == "engine.options.cpu_offload_params.0"
