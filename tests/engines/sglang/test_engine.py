import pytest

from gb300serve.core.values import Value, WrittenFloat
from gb300serve.engines.base import Problem
from gb300serve.engines.parse import ArgumentRefusedError, normalised, parse_argv
from gb300serve.engines.registry import engine
from gb300serve.engines.sglang.engine import check_limits
from gb300serve.engines.tables import table

SGLANG = engine("sglang")
VERSION = "0.5.20"
NIGHTLY = "0.5.21.dev0+g582389ce"
# The options of GLM-5.3-Flash's lane.
DAILY: dict[str, Value] = {
    "model_path": "/model",
    "host": "0.0.0.0",
    "port": 30001,
    "quantization": "modelopt_fp4",
    "trust_remote_code": True,
    "served_model_name": "glm-5.3-flash",
    "tool_call_parser": "glm47",
    "reasoning_parser": "glm45",
    "context_length": 1048576,
    "mem_fraction_static": WrittenFloat("0.85"),
    "cuda_graph_max_bs_decode": 16,
    "max_running_requests": 16,
    "max_prefill_tokens": 8192,
    "chunked_prefill_size": 8192,
    "kv_cache_dtype": "fp8_e4m3",
    "speculative_algorithm": "DFLASH",
    "speculative_draft_model_path": "/draft",
    "speculative_draft_attention_backend": "fa4",
    "max_mamba_cache_size": 48,
    "speculative_dflash_block_size": 7,
    "enable_linear_replayssm_spec": True,
}
DAILY_WORDS = (
    "--model-path /model --host 0.0.0.0 --port 30001 --quantization modelopt_fp4 --trust-remote-code "
    "--served-model-name glm-5.3-flash --tool-call-parser glm47 --reasoning-parser glm45 --context-length 1048576 "
    "--mem-fraction-static 0.85 --cuda-graph-max-bs-decode 16 --max-running-requests 16 --max-prefill-tokens 8192 "
    "--chunked-prefill-size 8192 --kv-cache-dtype fp8_e4m3 --speculative-algorithm DFLASH "
    "--speculative-draft-model-path /draft --speculative-draft-attention-backend fa4 --max-mamba-cache-size 48 "
    "--speculative-dflash-block-size 7 --enable-linear-replayssm-spec"
)


def test_the_lane_s_options_are_right_and_give_its_words() -> None:
    assert SGLANG.check(DAILY, VERSION) == ()
    assert SGLANG.argv(DAILY, VERSION) == tuple(DAILY_WORDS.split())


def test_a_nightly_is_checked_against_its_neighbours() -> None:
    message = f"sglang {NIGHTLY} has no option table: its options are checked against 0.5.20 and 0.5.21"
    assert SGLANG.check(DAILY, NIGHTLY) == (Problem((), "OPT008", message),)
    assert SGLANG.argv(DAILY, NIGHTLY) == tuple(DAILY_WORDS.split())


def test_without_a_version_every_table_is_asked() -> None:
    message = "engine.version is not set: the options are checked against all sglang tables"
    assert SGLANG.check({}, None) == (Problem((), "OPT008", message),)


def test_lists_are_several_words_and_json_is_one() -> None:
    options: dict[str, Value] = {
        "model_path": "/model",
        "cuda_graph_bs_decode": [1, 2, 4],
        "json_model_override_args": {"num_nextn_predict_layers": 1},
        "preferred_sampling_params": {"temperature": WrittenFloat("0.60")},
        "forward_hooks": [{"name": "a b"}],
        "lora_paths": ["/a", {"lora_name": "b", "lora_path": "/b"}],
        "cuda_graph_config": {"decode": {"max_bs": 64}},
        "no_dllm": None,
        "lora_strict_loading": False,
    }
    words = (
        "--model-path", "/model", "--cuda-graph-bs-decode", "1", "2", "4",
        "--json-model-override-args", '{"num_nextn_predict_layers":1}',
        "--preferred-sampling-params", '{"temperature":0.60}', "--forward-hooks", '[{"name":"a b"}]',
        "--lora-paths", "/a", '{"lora_name":"b","lora_path":"/b"}', "--cuda-graph-config", '{"decode":{"max_bs":64}}',
        "--no-lora-strict-loading",
    )  # fmt: skip
    del options["no_dllm"]
    assert SGLANG.check(options, "0.5.23") == ()
    assert SGLANG.argv(options, "0.5.23") == words
    shipped = table("sglang", "0.5.23")
    assert normalised(parse_argv(words, shipped), shipped) == normalised(options, shipped)


WRONG: list[tuple[dict[str, Value], Problem]] = [
    (
        {"mem_fraction_statc": 1},
        Problem(
            ("mem_fraction_statc",),
            "OPT001",
            "engine.options has no 'mem_fraction_statc' in sglang 0.5.20",
            "write 'mem_fraction_static'",
        ),
    ),
    (
        {"tp": 1},
        Problem(("tp",), "OPT001", "engine.options has no 'tp' in sglang 0.5.20", "write 'tp_size'"),
    ),
    (
        {"max_model_len": 4096},
        Problem(
            ("max_model_len",),
            "OPT001",
            "engine.options has no 'max_model_len' in sglang 0.5.20",
            "write 'context_length'",
        ),
    ),
    (
        {"trust_remote_code": False},
        Problem(
            ("trust_remote_code",),
            "OPT005",
            "trust_remote_code cannot be switched off: --trust-remote-code has no off form",
            "leave it out",
        ),
    ),
    (
        {"kv_cache_dtype": "fp8_e4m4"},
        Problem(
            ("kv_cache_dtype",),
            "OPT003",
            "kv_cache_dtype is 'fp8_e4m4', none of its 9 values",
            "write 'fp8_e4m3'",
        ),
    ),
    (
        {"context_length": "8K"},
        Problem(
            ("context_length",),
            "OPT002",
            "context_length is '8K', not a whole number, also with a suffix (1Mi is 1048576, 1M is 1000000)",
            "write 8192",
        ),
    ),
    (
        {"cuda_graph_config": {"decod": {}}},
        Problem(
            ("cuda_graph_config", "decod"), "OPT006", "cuda_graph_config has no 'decod'", "write 'decode'"
        ),
    ),
    (
        {"model_tag": "/model", "model_path": "/other"},
        Problem(
            ("model_path",), "OPT013", "model_path and model_tag both name the model", "leave one of them out"
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("options", "problem"), WRONG)
def test_what_the_engine_refuses(options: dict[str, Value], problem: Problem) -> None:
    assert SGLANG.check(options, VERSION) == (problem,)


def test_an_option_of_a_later_version_says_which() -> None:
    (problem,) = SGLANG.check({"enable_amd_monokernel": True}, VERSION)
    assert (problem.code, problem.hint) == ("OPT001", "sglang 0.5.23 has it")


def test_what_the_rest_asks() -> None:
    assert (SGLANG.name, SGLANG.port({}), SGLANG.port({"port": 8021})) == ("sglang", 30000, 8021)
    assert SGLANG.model_path(DAILY) == "/model"
    assert SGLANG.served_names({"model_path": "/model"}) == ("/model",)
    assert SGLANG.served_names(DAILY) == ("glm-5.3-flash",)
    assert SGLANG.served_names({}) == ()
    assert SGLANG.open_list({"port": 1, "cuda_graph_bs_decode": [1]}, VERSION) == "cuda_graph_bs_decode"
    assert SGLANG.open_list({"cuda_graph_bs_decode": [1], "port": 1}, VERSION) is None
    assert SGLANG.open_list({}, None) is None


READ: list[tuple[tuple[str, ...], dict[str, Value]]] = [
    (("/model", "--tp", "2"), {"model_path": "/model", "tp_size": 2}),
    (("--model", "/model"), {"model_path": "/model"}),
    (("--context-length", "1Mi"), {"context_length": "1Mi"}),
    (("--cuda-graph-bs-decode", "1", "2"), {"cuda_graph_bs_decode": [1, 2]}),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "options"), READ)
def test_words_are_read_as_sglang_reads_them(argv: tuple[str, ...], options: dict[str, Value]) -> None:
    assert parse_argv(argv, table("sglang", VERSION)) == options


HEAD = "sglang serve: error: "
REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("--port", "1", "/model"), HEAD + "unrecognized arguments: /model"),
    (("--model_path", "/model"), HEAD + "unrecognized arguments: --model_path /model"),
    (("--json-model-override-args.a", "1"), HEAD + "unrecognized arguments: --json-model-override-args.a 1"),
    (
        ("--context-length", "1m"),
        HEAD + "argument --context-length: Invalid integer value: '1m'. Use a plain integer, SI suffixes (1k, 1M), "
        "or IEC suffixes (1Ki, 1Mi). Suffixes are case-sensitive.",
    ),
    (
        ("--context-length", "1.5Mi"),
        HEAD + "argument --context-length: Decimals are not allowed with IEC suffixes like 'Mi'. Use an integer IEC "
        "value such as '1Mi', or an SI value such as '1.5M'.",
    ),
    (
        ("--forward-hooks", "{"),
        HEAD + "argument --forward-hooks: Invalid JSON list: {. Please provide a valid JSON list.",
    ),
    (("--preferred-sampling-params", "{a"), HEAD + "argument --preferred-sampling-params: invalid loads value: '{a'"),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "text"), REFUSED)
def test_words_are_refused_as_sglang_refuses_them(argv: tuple[str, ...], text: str) -> None:
    with pytest.raises(ArgumentRefusedError) as caught:
        parse_argv(argv, table("sglang", VERSION))
    assert caught.value.message == text


def outside(key: str, said: str, wanted: str, hint: str | None = None) -> Problem:
    return Problem((key,), "OPT007", f"{key} is {said}, not {wanted}", hint or f"write a number {wanted}")


REFUSED_LIMITS: list[tuple[dict[str, Value], Problem]] = [
    ({"tp_size": 0}, outside("tp_size", "0", "at least 1")),
    ({"max_running_requests": 0}, outside("max_running_requests", "0", "at least 1")),
    ({"speculative_dflash_block_size": 0}, outside("speculative_dflash_block_size", "0", "at least 1")),
    ({"port": 70000}, outside("port", "70000", "between 0 and 65535")),
    ({"context_length": 0}, outside("context_length", "0", "at least 1")),
    (
        {"mem_fraction_static": 85},
        outside("mem_fraction_static", "85", "above 0 and below 1", "it is a fraction: write 0.85"),
    ),
    ({"mem_fraction_static": 1}, outside("mem_fraction_static", "1", "above 0 and below 1")),
    (
        {"served_model_name": "glm:flash"},
        Problem(
            ("served_model_name",),
            "OPT014",
            "served_model_name is 'glm:flash', but SGLang reserves the colon for adapters",
            "write glm-flash",
        ),
    ),
]


@pytest.mark.parametrize(("options", "problem"), REFUSED_LIMITS)
def test_refused(options: dict[str, Value], problem: Problem) -> None:
    assert list(check_limits(options)) == [problem]


def test_taken() -> None:
    options: dict[str, Value] = {
        "tp_size": 1,
        "port": 30001,
        "mem_fraction_static": 0.9,
        "context_length": "1Mi",
        "served_model_name": "s3://bucket/model",
        "chunked_prefill_size": -1,
    }
    assert list(check_limits(options)) == []
