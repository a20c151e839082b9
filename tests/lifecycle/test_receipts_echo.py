from dataclasses import replace

import pytest

from gb300serve.boot.receipts import CheckedReceipt
from gb300serve.lifecycle.receipts import NAME, check_echo, same
from gb300serve.plan.model import Plan
from tests.support.launches import plan
from tests.support.simulated import V14, boot_script, said

V14_PLAN = replace(plan(), command=V14)


def echo(*changes: tuple[str, str]) -> str:
    """The simulated engine's echo of v14's words, with texts replaced."""
    text = next(line for line in said(boot_script(V14)) if "non-default args:" in line)
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return text


def differences(*changes: tuple[str, str], of: Plan = V14_PLAN) -> list[str]:
    return [one.sentence() for one in check_echo(of, echo(*changes))]


def test_what_was_sent_is_what_arrived() -> None:
    (one,) = check_echo(V14_PLAN, echo())
    assert one == CheckedReceipt(NAME, "kept", kind="arguments", found="16 arguments")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("'max_num_seqs': 16", "'max_num_seqs': 24"), "max_num_seqs (wanted 16, found 24)"),
        (("'cpu_offload_gb': 60.0, ", ""), "cpu_offload_gb (wanted 60, found not in the echo)"),
        (("'max_num_seqs': 16", "'max_num_seqs': 16, 'seed': 3"), "seed (wanted not sent, found 3)"),
        (("cpu_offload=True", "cpu_offload=False"),
         "engram_config (wanted {'cpu_offload': True}, found {'cpu_offload': False})"),
    ],
)  # fmt: skip
def test_an_argument_that_arrived_otherwise_is_named(change: tuple[str, str], sentence: str) -> None:
    assert differences(change) == [f"different: engine argument {sentence}"]


def test_a_schedule_that_was_lost_is_named() -> None:
    (found,) = differences((", 'num_speculative_tokens_per_batch_size': [[1, 4, 5], [5, 16, 1]]", ""))
    assert found.startswith("different: engine argument speculative_config")


def test_more_fields_of_an_object_are_its_defaults() -> None:
    assert check_echo(V14_PLAN, echo(("cpu_offload=True", "cpu_offload=True, use_thp=False")))[0].state == "kept"


def test_secrets_are_not_compared_nor_shown() -> None:
    (one,) = check_echo(replace(V14_PLAN, command=(*V14, "--api-key", "s3cret-12345")), echo())
    assert one.state == "kept"
    assert "s3cret" not in one.sentence()


def test_launchers_own_words_are_no_options() -> None:
    (one,) = check_echo(replace(V14_PLAN, command=("vllm", "serve", *V14)), echo())
    assert one.state == "kept"


def test_a_log_without_the_echo_tells_nothing() -> None:
    (one,) = check_echo(V14_PLAN, "")
    assert (one.state, one.good) == ("unknown", True)


def test_words_that_no_table_knows_are_not_compared() -> None:
    (one,) = check_echo(replace(V14_PLAN, command=(*V14, "--brand-new", "3")), echo())
    assert one.state == "unknown"


SGLANG = replace(
    plan(),
    engine="sglang",
    engine_version="0.5.23",
    command=(
        *("python3", "-m", "sglang.launch_server", "--model-path", "/model", "--tp", "1", "--port", "30001"),
        *("--context-length", "131072", "--mem-fraction-static", "0.85", "--trust-remote-code"),
        *("--speculative-algorithm", "NEXTN", "--cuda-graph-bs-decode", "1", "2", "4", "--api-key", "s3cret-12345"),
    ),
)
SERVER_ARGS = (
    "server_args={'model_path': '/model', 'tp_size': 1, 'port': 30001, 'context_length': 131072, 'dtype': 'auto',"
    " 'mem_fraction_static': 0.85, 'trust_remote_code': True, 'speculative_algorithm': 'EAGLE', 'gc': inf,"
    " 'cuda_graph_bs_decode': [1, 2, 4], 'api_key': 's3cret-12345', 'quantization': None}"
)


def test_the_other_engine_echoes_every_argument() -> None:
    (one,) = check_echo(SGLANG, SERVER_ARGS)
    assert one == CheckedReceipt(NAME, "kept", kind="arguments", found="9 arguments")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("131072", "65536"), "context_length (wanted 131072, found 65536)"),
        (("'trust_remote_code': True", "'trust_remote_code': False"), "trust_remote_code (wanted True, found False)"),
        (("'mem_fraction_static': 0.85, ", ""), "mem_fraction_static (wanted 0.85, found not in the echo)"),
        (("[1, 2, 4]", "[1, 2]"), "cuda_graph_bs_decode (wanted [1, 2, 4], found [1, 2])"),
    ],
)
def test_what_the_other_engine_uses_otherwise_is_named(change: tuple[str, str], sentence: str) -> None:
    assert change[0] in SERVER_ARGS
    assert [one.sentence() for one in check_echo(SGLANG, SERVER_ARGS.replace(*change))] == [
        f"different: engine argument {sentence}"
    ]


def test_the_form_of_earlier_releases_of_the_other_engine() -> None:
    older = "server_args=ServerArgs(model_path='/model', tp_size=1, port=30001)"
    sent = replace(SGLANG, command=("sglang", "serve", "--model-path", "/model", "--port", "30002"))
    assert [one.sentence() for one in check_echo(sent, older)] == [
        "different: engine argument port (wanted 30002, found 30001)"
    ]


@pytest.mark.parametrize(
    ("sent", "heard", "expected"),
    [
        (60, 60.0, True),
        ("0.97", 0.97, True),
        (True, 1, False),
        (["a", "b"], ["b", "a"], True),
        ("name", ["name"], True),
        ([1, 2], [2, 1], False),
        ([1], [1, 2], False),
        ({"a": 1}, {"a": 1.0, "b": 2}, True),
        ({"a": 1, "c": 3}, {"a": 1}, False),
    ],
)
def test_values_in_two_spellings(sent: object, heard: object, *, expected: bool) -> None:
    assert same(sent, heard) is expected
