import pytest
from hypothesis import given
from hypothesis import strategies as st

from gb300serve.core.values import Value, WrittenFloat
from gb300serve.engines.options import is_secret, reads_as_flag
from gb300serve.engines.parse import parse_argv
from gb300serve.engines.tables import table
from tests.engines.samples import DAY_ZERO

SAID: list[tuple[str, Value, tuple[str, ...]]] = [
    ("cpu_offload_gb", 60, ("--cpu-offload-gb", "60")),
    ("gpu_memory_utilization", WrittenFloat("0.90"), ("--gpu-memory-utilization", "0.90")),
    ("cpu_offload_params", ["a", "b"], ("--cpu-offload-params", "a", "b")),
    ("cpu_offload_params", "a", ("--cpu-offload-params", "a")),
    ("engram_config", {"cpu_offload": True}, ("--engram-config", '{"cpu_offload":true}')),
    ("allowed_origins", ["*", "ü"], ("--allowed-origins", '["*","ü"]')),
    ("middleware", ["a", "b"], ("--middleware", "a", "--middleware", "b")),
    ("lora_modules", ["a=/b", {"name": "c"}], ("--lora-modules", "a=/b", '{"name":"c"}')),
    ("trust_remote_code", True, ("--trust-remote-code",)),
    ("trust_remote_code", False, ("--no-trust-remote-code",)),
    ("enable_prefix_caching", False, ("--no-enable-prefix-caching",)),
    ("hf_token", True, ("--hf-token",)),
    ("hf_token", "x", ("--hf-token", "x")),
    ("max_model_len", -1, ("--max-model-len", "-1")),
    ("max_model_len", "1M", ("--max-model-len", "1M")),
    ("chat_template", "--x.y", ("--chat-template=--x.y",)),
    ("video_pruning_rate", WrittenFloat("-0.5"), ("--video-pruning-rate=-0.5",)),
    ("chat_template", "", ("--chat-template", "")),
    ("model_tag", "/model", ("/model",)),
    ("api_key", "${secret:KEY}", ("--api-key", "${secret:KEY}")),
    ("port", None, ()),
]


@pytest.mark.parametrize(("key", "value", "words"), SAID)
@pytest.mark.parametrize("version", [DAY_ZERO, "0.33.0"])
def test_words(version: str, key: str, value: Value, words: tuple[str, ...]) -> None:
    assert table("vllm", version).words(key, value) == words


@given(st.text())
def test_any_text_survives_the_engine_s_parser(text: str) -> None:
    shipped = table("vllm", DAY_ZERO)
    words = ("/model", *shipped.words("response_role", text), "--port", "1")
    assert parse_argv(words, shipped) == {"model": "/model", "response_role": text, "port": 1}


def test_what_reads_as_a_flag() -> None:
    assert [word for word in ("-", "-x", "--x", "-1", "-1.5", "x-y", "") if reads_as_flag(word)] == [
        "-x",
        "--x",
        "-1.5",
    ]


def test_secrets() -> None:
    assert [value for value in ("${secret:A}", "x${secret:A}", "${secret:}", 1, "$") if is_secret(value)] == [
        "${secret:A}"
    ]
