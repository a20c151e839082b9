import pytest

from gb300serve.core.values import Value
from gb300serve.engines.parse import ArgumentRefusedError, parse_argv
from gb300serve.engines.tables import table
from tests.engines.samples import DAY_ZERO

TABLE = table("vllm", DAY_ZERO)

READ: list[tuple[tuple[str, ...], dict[str, Value]]] = [
    (("/model",), {"model": "/model"}),
    (("--model", "/model", "--port", "1"), {"model": "/model", "port": 1}),
    (("--port", "1", "--model=/model"), {"model": "/model", "port": 1}),
    (("--max_model_len", "1M"), {"max_model_len": "1M"}),
    (("--max-model-len=1048576",), {"max_model_len": 1048576}),
    (("--max-model", "auto"), {"max_model_len": "auto"}),
    (("--max-model-len", "-1"), {"max_model_len": -1}),
    (("-tp", "2", "-sc", "{}"), {"tensor_parallel_size": 2, "speculative_config": {}}),
    (("--no-trust-remote-code",), {"trust_remote_code": False}),
    (("--no-async-scheduling", "-ep"), {"async_scheduling": False, "enable_expert_parallel": True}),
    (("--port", "1", "--port", "2"), {"port": 2}),
    (("--cpu-offload-params", "a", "b", "/model"), {"cpu_offload_params": ["a", "b", "/model"]}),
    (("--middleware", "a", "--middleware", "b"), {"middleware": ["a", "b"]}),
    (("--engram-config", "None", "--max-log-len", ""), {"engram_config": None, "max_log_len": None}),
    (("--hf-overrides", "a.b"), {"hf_overrides": "a.b"}),
    (("--additional-config", '{"a":1.50}'), {"additional_config": {"a": 1.5}}),
    (("--hf-token", "--moe-backend", "FlashInfer-TRTLLM"), {"hf_token": True, "moe_backend": "flashinfer_trtllm"}),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "options"), READ)
def test_read(argv: tuple[str, ...], options: dict[str, Value]) -> None:
    assert parse_argv(argv, TABLE) == options


def test_numbers_keep_their_spelling_and_options_their_order() -> None:
    found = parse_argv(("--gpu-memory-utilization", "0.90", "--cpu-offload-gb", "60", "--port", "1"), TABLE)
    assert [f"{key}={value}" for key, value in found.items()] == [
        "gpu_memory_utilization=0.90",
        "cpu_offload_gb=60",
        "port=1",
    ]


HEAD = "vllm serve: error: "
SWITCH = "--trust-remote-code/--no-trust-remote-code"
REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("/m", "--offload-backnd", "uva"), "vllm: error: unrecognized arguments: --offload-backnd uva"),
    (("/m", "--trust-remote-code", "true"), "vllm: error: unrecognized arguments: true"),
    (("/m", "--cpu-offload-params=a", "b"), "vllm: error: unrecognized arguments: b"),
    (("/m", "--max-num-partial-prefills", "2"), "vllm: error: unrecognized arguments: --max-num-partial-prefills 2"),
    (("--port", "abc"), HEAD + "argument --port: invalid int value: 'abc'"),
    (("--port",), HEAD + "argument --port: expected one argument"),
    (("--api-key", "--port", "1"), HEAD + "argument --api-key: expected at least one argument"),
    (("--cpu-offload-gb", "60GB"), HEAD + "argument --cpu-offload-gb: invalid float value: '60GB'"),
    (("--max-num-seqs", "1k"), HEAD + "argument --max-num-seqs: invalid int value: '1k'"),
    (("--max-model-len", "1MM"), HEAD + "argument --max-model-len: invalid human_readable_int_or_auto value: '1MM'"),
    (
        ("--max-model-len", "1.5K"),
        HEAD + "argument --max-model-len: Decimals are not allowed with binary suffixes like K. "
        "Did you mean to use 1.5k instead?",
    ),
    (("--trust-remote-code=true",), f"{HEAD}argument {SWITCH}: ignored explicit argument 'true'"),
    (("--allowed-origins", "{x}"), HEAD + "argument --allowed-origins: invalid loads value: '{x}'"),
    (("--max-log-len", "x"), HEAD + "argument --max-log-len: Value x cannot be converted to <class 'int'>."),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "line"), REFUSED)
def test_refused(argv: tuple[str, ...], line: str) -> None:
    with pytest.raises(ArgumentRefusedError) as caught:
        parse_argv(argv, TABLE)
    assert caught.value.message == line
    assert caught.value.message.endswith(caught.value.reason)
    assert caught.value.engine_exit_code == 2


def test_none_is_a_choice_since_0_31() -> None:
    words = ("--safetensors-load-strategy", "None")
    assert parse_argv(words, table("vllm", "0.31.0")) == {"safetensors_load_strategy": None}
    with pytest.raises(ArgumentRefusedError, match="argument --safetensors-load-strategy: invalid choice: None"):
        parse_argv(words, TABLE)


def test_an_ambiguous_beginning_names_what_it_could_be() -> None:
    with pytest.raises(
        ArgumentRefusedError, match=r"ambiguous option: --max-model could match|ambiguous option: --max "
    ):
        parse_argv(("--max", "1K"), TABLE)


def test_a_wrong_choice_lists_the_right_ones() -> None:
    # Python 3.12 and later print the choices without quotes.
    with pytest.raises(
        ArgumentRefusedError, match=r"invalid choice: 'UVA' \(choose from '?auto'?, '?prefetch'?, '?uva'?\)"
    ):
        parse_argv(("--offload-backend", "UVA"), TABLE)
