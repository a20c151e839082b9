from typing import Any

import pytest

from gb300serve.core.values import compact_json
from gb300serve.importers.draft import Draft
from gb300serve.importers.engine_options import Flags, argument_value, is_flag, option_value, secret_variable
from gb300serve.importers.report import Report, TextPosition
from gb300serve.importers.shell.words import ExpandedWord, Reference, reference_mark
from tests.support.imports import IMAGE, RUN, command, engine, read, said

FLAGS = Flags("vllm", "0.33.0")


@pytest.mark.parametrize(
    ("flag", "key", "off", "keys", "abbreviated"),
    [
        ("--max-model-len", "max_model_len", False, "", False),
        ("--max_model_len", "max_model_len", False, "", False),
        ("--max-model", "max_model_len", False, "", True),
        ("-tp", "tensor_parallel_size", False, "", False),
        ("--no-enable-prefix-caching", "enable_prefix_caching", True, "", False),
        ("--speculative-config.num_speculative_tokens", "speculative_config", False, "num_speculative_tokens", False),
    ],
)
def test_the_option_of_a_flag(flag: str, key: str, off: bool, keys: str, abbreviated: bool) -> None:
    found = FLAGS.find(flag)
    assert found is not None
    assert (found.option.key, found.off, found.keys, found.abbreviated) == (key, off, keys, abbreviated)


@pytest.mark.parametrize("flag", ["--nope", "--max", "--port.x", "-x", "--m"])
def test_unknown_flags(flag: str) -> None:
    assert FLAGS.find(flag) is None


def test_suggestions_are_limited() -> None:
    flags = Flags("vllm", "0.33.0")
    assert flags.suggest("--max-modl-len") == "--max-model-len"
    for _ in range(19):
        flags.suggest("--max-modl-len")
    assert flags.suggest("--max-modl-len") is None


def test_an_unknown_version_takes_the_flags_of_every_table() -> None:
    flags = Flags("vllm", None)
    assert {len(flags.tables) > 1, "--port" in flags} == {True}


@pytest.mark.parametrize(("word", "flag"), [("--a", True), ("-a", True), ("-1", False), ("-1.5", False), ("-", False)])
def test_negative_numbers_are_values(word: str, flag: bool) -> None:
    assert is_flag(word) is flag


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("--model /model", {"model": "/model"}),
        ("/model", {"model_tag": "/model"}),
        ("--port=31 --max_num_seqs 4 --max_model_len=9", {"port": 31, "max_num_seqs": 4, "max_model_len": 9}),
        ("-tp 2 -O3", {"tensor_parallel_size": 2, "optimization_level": "3"}),
        ("--max-model 64K", {"max_model_len": "64K"}),
        ("--max-num-seqs 1_000", {"max_num_seqs": 1000}),
        ("--gpu-memory-utilization .9 --cpu-offload-gb 60", {"gpu_memory_utilization": 0.9, "cpu_offload_gb": 60}),
        ("--trust-remote-code --no-enable-prefix-caching", {"trust_remote_code": True, "enable_prefix_caching": False}),
        ("--trust-remote-code=true", {"trust_remote_code": True}),
        ("--served-model-name a b", {"served_model_name": ["a", "b"]}),
        ("--served-model-name a", {"served_model_name": "a"}),
        ("--cudagraph-capture-sizes 1 2 4", {"cudagraph_capture_sizes": [1, 2, 4]}),
        ("--port 1 --port 2", {"port": 2}),
        (
            "--speculative-config.method mtp --speculative_config.num_speculative_tokens=3",
            {"speculative_config": {"method": "mtp", "num_speculative_tokens": 3}},
        ),
        ("-cc.mode=3", {"compilation_config": {"mode": 3}}),
        (
            '--speculative-config \'{"method":"a"}\' --speculative-config.num_speculative_tokens 5',
            {"speculative_config": {"num_speculative_tokens": 5}},
        ),
        ("--trust-remote-code /model", {"trust_remote_code": True, "model_tag": "/model"}),
        ("--api-key EMPTY", {"api_key": "EMPTY"}),
        ("--api-key $KEY", {"api_key": {"secret": "KEY"}}),
        ('--api-key "$(cat /k)"', {"api_key": {"secret": "API_KEY"}}),
        ("--seed -1", {"seed": -1}),
    ],
)
def test_options_in_every_spelling(words: str, options: dict[str, Any]) -> None:
    found = engine(words)
    assert found["options"] == options
    assert "extra_args" not in found


def test_numbers_keep_their_spelling() -> None:
    assert compact_json(engine("--gpu-memory-utilization 0.90")["options"]) == '{"gpu_memory_utilization":0.90}'
    assert command(RUN + IMAGE + "/m --gpu-memory-utilization 0.90") == ["/m", "--gpu-memory-utilization", "0.90"]


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("--frobnicate", ["--frobnicate"]),
        ("--frobnicate a b --port 1", ["--frobnicate", "a", "b"]),
        ("--frobnicate=a", ["--frobnicate=a"]),
        ("--port", ["--port"]),
        ("/model /other", ["/other"]),
        ("--frobnicate hf_Qw3rTy7uIoPaSdFgHj", ["--frobnicate", "${secret:FROBNICATE}"]),
    ],
)
def test_unknown_options_are_kept_as_written(words: str, extra: list[str]) -> None:
    assert engine(words)["extra_args"] == extra


@pytest.mark.parametrize(
    ("words", "finding"),
    [
        ("--port 1 --port 2", ("warning", "repeated-option", 1, 80)),
        ("--max-model 64K", ("note", "other-spelling", 1, 71)),
        ("--max-num-seqs lots", ("warning", "refused-value", 1, 86)),
        ("--frobnicate 1", ("warning", "unknown-option", 1, 71)),
        ("--trust-remote-code=true", ("warning", "refused-value", 1, 71)),
        ("-p 80:8000", ("warning", "docker-option-after-the-image", 1, 71)),
    ],
)
def test_what_is_said(words: str, finding: tuple[str, str, int, int]) -> None:
    assert finding in said(RUN + IMAGE + words)


SGLANG = "docker run --gpus all lmsysorg/sglang:v0.5.20 python3 -m sglang.launch_server "


def test_an_engine_with_other_forms() -> None:
    words = (
        "--model-path /m --tp-size 2 --mem-fraction-static 0.83 --trust-remote-code --cuda-graph-bs-decode 1 2 4 "
        "--context-length 1Mi --device cuda --revision 0123 --random-seed -1 --json-model-override-args"
    )
    assert command(SGLANG + words + " '{\"a\": 1}'\n")[3:] == [*words.split(), '{"a":1}']


@pytest.mark.parametrize(
    ("words", "options", "finding"),
    [
        ("/model --port 1", {"model_tag": "/model", "port": 1}, None),
        ("--tp 2", {"tp_size": 2}, ("note", "other-spelling")),
        ("--model_path /m", {"model_path": "/m"}, ("warning", "refused-value")),
        (
            "--port 1 --trust-remote-code /m",
            {"port": 1, "trust_remote_code": True, "model_path": "/m"},
            ("warning", "refused-value"),
        ),
        ('--api-key "$(cat /k)"', {"api_key": {"secret": "API_KEY"}}, None),
        ('--lora-paths a \'{"lora_name":"b"}\'', {"lora_paths": ["a", {"lora_name": "b"}]}, None),
    ],
)
def test_arguments_of_sglang(words: str, options: dict[str, Any], finding: tuple[str, str] | None) -> None:
    found = read(SGLANG + words + "\n")
    assert found.document["engine"]["options"] == options
    findings = [
        (one.severity, one.name) for one in found.diagnostics if one.name in ("refused-value", "other-spelling")
    ]
    assert findings == ([finding] if finding else [])


def test_sglang_has_no_dotted_flags() -> None:
    found = read(SGLANG + "--model-path /m --hisparse-config.top_k 1\n").document["engine"]
    assert found["extra_args"] == ["--hisparse-config.top_k", "1"]


def test_a_repeated_key_is_not_in_the_message() -> None:
    found = read("docker run vllm:1 --model /m --api-key sk-one-1234567 --api-key sk-two-1234567\n").diagnostics
    (message,) = [one.message for one in found if one.code == "IMP010"]
    assert message == "`--api-key` is repeated (api_key): the engine uses the last value, a secret"


def test_invalid_json() -> None:
    found = read("docker run vllm:1 --model /m --allowed-origins '*' --attention-config 3\n").diagnostics
    assert [one.message for one in found if one.code == "IMP012"] == [
        "--allowed-origins: * is not a JSON list",
        "--attention-config: 3 is not a JSON object",
    ]


AT = TextPosition(1, 1)


@pytest.fixture
def draft() -> Draft:
    return Draft(Report(), [Reference("env", "KEY"), Reference("file", "/k")])


@pytest.mark.parametrize(
    ("key", "text", "name"),
    [
        ("api_key", "abc", "API_KEY"),
        ("api_key", "EMPTY", None),
        ("api_key", reference_mark(0), "API_KEY"),
        ("chat_template", reference_mark(1), "CHAT_TEMPLATE"),
        ("chat_template", reference_mark(0), None),
        ("chat_template", "a", None),
        ("chat_template", "hf_Qw3rTy7uIoPaSdFgHjKl", "CHAT_TEMPLATE"),
        ("9lives", reference_mark(1), "SECRET"),
    ],
)
def test_which_values_are_secrets(draft: Draft, key: str, text: str, name: str | None) -> None:
    assert secret_variable(draft, key, text) == name


def test_the_options_of_the_recipe(draft: Draft) -> None:
    assert option_value(draft, "api_key", ExpandedWord("abc", AT), "abc") == {"secret": "API_KEY"}
    assert option_value(draft, "port", ExpandedWord("3", AT), 3) == 3
    assert (
        option_value(draft, "chat_template", ExpandedWord(f"x{reference_mark(0)}", AT), f"x{reference_mark(0)}")
        == "x$KEY"
    )
    assert argument_value(draft, "--new-api-key", ExpandedWord(reference_mark(1), AT)) == "${secret:NEW_API_KEY}"
    assert argument_value(draft, "--new", ExpandedWord("3", AT)) == "3"


def test_the_name_of_an_unknown_flag_is_enough(draft: Draft) -> None:
    assert argument_value(draft, "--admin-api-key", ExpandedWord("hunter2", AT)) == "${secret:ADMIN_API_KEY}"
    assert draft.secrets == {"ADMIN_API_KEY": {"env": "ADMIN_API_KEY"}}
    assert argument_value(draft, "--pad-token", ExpandedWord("<pad>", AT)) == "<pad>"
    assert secret_variable(draft, "session_token", "plain") is None


def test_a_spelling_that_only_some_versions_know_stays_as_written() -> None:
    """vLLM 0.33 took --disable-log-requests back as another spelling; 0.29 does not know it."""
    written = "--model /m --disable-log-requests"
    assert read(f"docker run vllm/vllm-openai:latest {written}\n").plan.command == tuple(written.split())
    known = read(f"docker run vllm/vllm-openai:v0.33.0 {written}\n").document["engine"]["options"]
    assert known == {"model": "/m", "enable_log_requests": False}
