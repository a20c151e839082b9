import pytest

from gb300serve.core.values import Value, WrittenFloat
from gb300serve.engines.base import Problem
from gb300serve.engines.check import check_least, check_port, meant_fraction, outside, shown
from gb300serve.engines.tables import table
from tests.engines.samples import DAY_ZERO

ONE = [
    ("offload_backend", "UVA", "OPT003", "not one of auto, prefetch, uva", "write 'uva'"),
    ("offload_backend", "disk", "OPT003", "not one of auto, prefetch, uva", None),
    ("cpu_offload_gb", "60GB", "OPT002", "not a number", "write 60"),
    ("cpu_offload_gb", True, "OPT002", "not a number", None),
    ("cpu_offload_gb", "60 GiB", "OPT002", "not a number", "write 60"),
    ("cpu_offload_gb", "50%", "OPT002", "not a number", None),
    ("gpu_memory_utilization", "95%", "OPT002", "not a number", "write 0.95"),
    ("gpu_memory_utilization", "97.5 %", "OPT002", "not a number", "write 0.975"),
    ("gpu_memory_utilization", "95", "OPT002", "not a number", "write 0.95"),
    ("gpu_memory_utilization", "0,95", "OPT002", "not a number", "write 0.95"),
    ("gpu_memory_utilization", "0.95:1", "OPT002", "not a number", None),
    ("max_num_seqs", "0,95", "OPT002", "not a whole number", None),
    ("max_num_seqs", ["a"], "OPT004", "takes one value, not the list", "write one value"),
    ("offload_backend", 5, "OPT002", "not text", None),
    ("tensor_parallel_size", "1", "OPT002", "not a whole number", "write 1"),
    ("tensor_parallel_size", WrittenFloat("1.0"), "OPT002", "not a whole number", "write 1"),
    ("tensor_parallel_size", WrittenFloat("1.5"), "OPT002", "not a whole number", None),
    ("max_model_len", "null", "OPT002", "not a whole number", "write null, without quotes"),
    ("offload_backend", "null", "OPT003", "not one of auto", "write null, without quotes"),
    ("max_num_seqs", "1k", "OPT002", "not a whole number", "write 1000"),
    ("served_model_name", 5, "OPT002", "not text", 'write "5"'),
    ("served_model_name", [], "OPT004", "an empty list", "write at least one value, or leave it out"),
    ("trust_remote_code", "yes", "OPT002", "not true or false", "write true"),
    ("trust_remote_code", 0, "OPT002", "not true or false", "write false"),
    ("trust_remote_code", "flase", "OPT002", "not true or false", "write false"),
    ("trust_remote_code", "/model", "OPT002", "not true or false", "write true or false"),
    ("headless", "no", "OPT002", "not true or false", "leave it out"),
    ("headless", "/model", "OPT002", "not true or false", "write true, or leave it out"),
    ("headless", "null", "OPT002", "not true or false", "write null, without quotes"),
    ("headless", False, "OPT005", "cannot be switched off: --headless has no off form", "leave it out"),
    ("host", ["a"], "OPT004", "takes one value, not the list", "write 'a'"),
    ("host", ["a", "b"], "OPT004", "takes one value, not the list", "write one value"),
    ("engram_config", '{"a": 1}', "OPT002", "is the text", 'write {"a":1}, without quotes around it'),
    ("engram_config", "{cpu_offload: true}", "OPT002", "is the text", "write it as a mapping"),
    ("engram_config", True, "OPT002", "not a mapping", "write a mapping"),
    ("allowed_origins", {"a": 1}, "OPT002", "not a list", "write a list"),
    ("hf_overrides", '{"a": 1}', "OPT002", "is the text", 'write {"a":1}, without quotes around it'),
    ("hf_overrides", 3, "OPT002", "not a mapping", "write a mapping"),
    ("model_tag", "--model", "OPT011", "which the engine would parse as a flag", None),
    ("mm_encoder_attn_dtype", "None", "OPT003", "not one of fp8", None),
    ("hf_token", False, "OPT002", "not text", 'write "false"'),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "code", "message", "hint"), ONE)
def test_one_problem(key: str, value: Value, code: str, message: str, hint: str | None) -> None:
    (problem,) = table("vllm", DAY_ZERO).check(key, value)
    assert (problem.path, problem.code, problem.hint, problem.severity) == ((key,), code, hint, None)
    assert problem.message.startswith(key)
    assert message in problem.message


@pytest.mark.parametrize("text", ["1MM", "1,048,576", "1e6", "1.5K", "1048576.0", "", "one"])
def test_lengths_that_the_engine_refuses(text: str) -> None:
    (problem,) = table("vllm", DAY_ZERO).check("max_model_len", text)
    wanted = "a whole number, also with a suffix (1M is 1048576, 1m is 1000000), or auto"
    number = {"1,048,576": "write 1048576", "1048576.0": "write 1048576"}.get(text)
    assert (problem.code, problem.message, problem.hint) == (
        "OPT002",
        f"max_model_len is '{text}', not {wanted}",
        number,
    )


RIGHT: list[tuple[str, Value]] = [
    ("max_model_len", "auto"),
    ("max_model_len", -1),
    ("max_model_len", "1M"),
    ("max_num_batched_tokens", "8k"),
    ("cpu_offload_gb", WrittenFloat("60.5")),
    ("cpu_offload_params", "one"),
    ("moe_backend", "FlashInfer-trtllm"),
    ("hf_token", True),
    ("hf_token", "text"),
    ("hf_overrides", "module.function"),
    ("hf_overrides", {"a": None}),
    ("lora_modules", ["a=/b", {"name": "c", "path": "/d"}]),
    ("lora_modules", {"name": "c", "path": "/d"}),
    ("api_key", "${secret:KEY}"),
    ("api_key", ["${secret:KEY}", "${secret:OTHER}"]),
    ("port", "${secret:PORT}"),
    ("port", None),
    ("allowed_origins", ["https://a"]),
    ("optimization_level", "3"),
]


@pytest.mark.parametrize(("key", "value"), RIGHT)
def test_right(key: str, value: Value) -> None:
    assert table("vllm", DAY_ZERO).check(key, value) == ()


def test_many_choices_stand_in_the_hint() -> None:
    known = table("vllm", "0.30.0").find("kv_cache_dtype")
    assert known is not None
    (problem,) = table("vllm", "0.30.0").check("kv_cache_dtype", "x")
    assert problem.message == "kv_cache_dtype is 'x', not one of its 18 values"
    assert problem.hint == f"write one of {', '.join(map(str, known.values))}"


def test_items_of_a_list_have_addresses_of_their_own() -> None:
    problems = table("vllm", DAY_ZERO).check("cpu_offload_params", ["right", 1, "--port", None, ["x"]])
    assert [(problem.path, problem.code) for problem in problems] == [
        (("cpu_offload_params", 1), "OPT002"),
        (("cpu_offload_params", 2), "OPT011"),
        (("cpu_offload_params", 3), "OPT002"),
        (("cpu_offload_params", 4), "OPT002"),
    ]


def test_a_long_value_is_shown_short() -> None:
    assert shown(["x" * 100]) == '["' + "x" * 55 + "..."
    assert shown("x") == "'x'"


def test_a_choice_that_was_cut_short() -> None:
    (problem,) = table("sglang", "0.5.22").check("kv_cache_dtype", "fp8")
    assert problem.hint == "write 'fp8_e5m2' or 'fp8_e4m3'"


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ('{"mode": 3}', 'write {"mode":3}, without quotes around it'),
        ("3", "write it as a mapping"),
        ("[1]", "write it as a mapping"),
        ("null", "write it as a mapping"),
        ("{", "write it as a mapping"),
    ],
)
def test_json_as_a_text(value: str, hint: str) -> None:
    (problem,) = table("vllm", "0.30.0").check("attention_config", value)
    assert problem.hint == hint


def test_numbers_below_the_least() -> None:
    found = list(check_least({"a": 0, "b": 1, "c": "x"}, {"a": 1, "b": 1, "c": 1, "d": 1}))
    assert found == [Problem(("a",), "OPT007", "a is 0, not at least 1", "write a number at least 1")]


def test_ports() -> None:
    assert [len(list(check_port(value))) for value in (-1, 0, 65535, 65536, "x", None)] == [1, 0, 0, 1, 0, 0]


def test_a_ratio_is_not_a_share() -> None:
    (problem,) = table("sglang", "0.5.21").check("mamba_full_memory_ratio", "03.0")
    assert problem.hint == "write 3.0"


def test_percentages_stand_for_fractions() -> None:
    assert [meant_fraction(value) for value in (0.5, 1, 1.5, 85, 100, 101)] == [
        None,
        None,
        None,
        "it is a fraction: write 0.85",
        "it is a fraction: write 1",
        None,
    ]
    assert outside("a", 85, "below 1", meant_fraction(85)).hint == "it is a fraction: write 0.85"
