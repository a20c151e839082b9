from dataclasses import dataclass, field, replace

import pytest

from gb300serve.boot.events import BootBegan
from gb300serve.boot.receipts import CheckedReceipt, ExpectedLine
from gb300serve.core.errors import Action, BackendError
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.receipts import (
    NAME,
    DegradedError,
    ReceiptCollector,
    binding,
    check_echo,
    check_patches,
    patches,
    refuse_degraded,
    same,
    verdict,
)
from gb300serve.plan.model import Mount, Plan
from tests.support.fake_backend import FakeBackend
from tests.support.launches import contained, plan
from tests.support.simulated import V14, boot_script, said

OFFLOADED = ExpectedLine("Total CPU offloaded parameters: {value}", 61.17, 0.01, missing="fail")
KV = ExpectedLine("Available KV cache memory: {value} GiB", 4.87, 0.03)
V14_LAUNCH = Launch(plan(), receipts=(OFFLOADED, KV))
GOOD = CheckedReceipt("a", "kept")
DIFFERENT = CheckedReceipt("b", "different", expected=4.87, found=0.65)
MISSING = CheckedReceipt("c", "missing", missing="fail")
ARGUMENT = CheckedReceipt("engine argument x", "different", kind="arguments", expected="1", found="2")


def test_lines_then_arguments() -> None:
    witness = ReceiptCollector(V14_LAUNCH)
    witness.feed("(APIServer pid=1) INFO 11-29 19:50:05 [a.py:1] non-default args: {'model_tag': '/model', 'model': "
                 "'/model', 'served_model_name': ['dsv41-flash-uva'], 'port': 30006}")  # fmt: skip
    witness.feed("Total CPU offloaded parameters: 61.17")
    found = witness.results("id", FakeBackend())
    assert [(one.kind, one.state) for one in found] == [("line", "kept"), ("line", "missing"), ("arguments", "kept")]


def test_a_boot_that_begins_again_begins_anew() -> None:
    witness = ReceiptCollector(V14_LAUNCH)
    witness.feed("Total CPU offloaded parameters: 61.17", (BootBegan(1),))
    witness.feed("again", (BootBegan(2),))
    assert witness.lines()[0].state == "missing"


@pytest.mark.parametrize(
    ("receipts", "expected"),
    [
        ((), "kept"),
        ((GOOD, CheckedReceipt("d", "unknown")), "kept"),
        ((GOOD, DIFFERENT), "degraded"),
        ((DIFFERENT, MISSING), "failed"),
        ((ARGUMENT,), "degraded"),
    ],
)
def test_what_is_not_kept_decides(receipts: tuple[CheckedReceipt, ...], expected: str) -> None:
    assert verdict(receipts, V14_LAUNCH) == expected


@pytest.mark.parametrize(
    ("override", "binds"),
    [
        ("engine.options.port=30007", True),
        ("container.name=other", True),
        ("engine.options.cpu_offload_gb=70", False),
        ("container.env.PIN_MODE=off", False),
        ("engine.options.portable=1", False),
    ],
)
def test_lines_bind_where_nothing_was_changed_that_a_boot_prints(override: str, *, binds: bool) -> None:
    assert binding(replace(V14_LAUNCH, overrides=(override,))) is binds


def test_a_changed_launch_is_not_judged_by_lines_but_by_its_arguments() -> None:
    changed = replace(V14_LAUNCH, overrides=("engine.options.cpu_offload_gb=70",))
    assert verdict((DIFFERENT, MISSING), changed) == "kept"
    assert verdict((DIFFERENT, ARGUMENT), changed) == "degraded"


def test_degraded_is_said_by_name() -> None:
    refuse_degraded(V14_LAUNCH, (GOOD,))
    with pytest.raises(DegradedError) as caught:
        refuse_degraded(V14_LAUNCH, (GOOD, DIFFERENT))
    assert caught.value.exit_code == 9
    assert caught.value.message == (
        "DEGRADED: dsv41-vllm serves, but its boot does not match the receipts of a good boot\n"
        "  different: b (wanted 4.87, found 0.65)"
    )
    assert caught.value.hint == "it keeps running"
    assert [action.verb for action in caught.value.suggest if isinstance(action, Action)] == ["receipts", "down"]


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
        (("'max_num_seqs': 16", "'max_num_seqs': 24"), "max_num_seqs (expected 16, found 24)"),
        (("'cpu_offload_gb': 60.0, ", ""), "cpu_offload_gb (expected 60, found not in the echo)"),
        (("'max_num_seqs': 16", "'max_num_seqs': 16, 'seed': 3"), "seed (expected not sent, found 3)"),
        (("cpu_offload=True", "cpu_offload=False"),
         "engram_config (expected {'cpu_offload': True}, found {'cpu_offload': False})"),
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
        (("131072", "65536"), "context_length (expected 131072, found 65536)"),
        (("'trust_remote_code': True", "'trust_remote_code': False"), "trust_remote_code (expected True, found False)"),
        (("'mem_fraction_static': 0.85, ", ""), "mem_fraction_static (expected 0.85, found not in the echo)"),
        (("[1, 2, 4]", "[1, 2]"), "cuda_graph_bs_decode (expected [1, 2, 4], found [1, 2])"),
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
        "different: engine argument port (expected 30002, found 30001)"
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


HOOK, MAP = "ab" * 32, "cd" * 32
PLAN = contained(
    plan(),
    mounts=(
        Mount("/models/x", "/model", read_only=True),
        Mount("/p/site.py", "/usr/lib/site.py", read_only=True, sha256=HOOK),
        Mount("/p", "/w", read_only=True, sha256={"hook.py": HOOK, "map.json": MAP}),
    ),
)


@dataclass
class Open(FakeBackend):
    """One that can be looked into."""

    files: dict[str, str] = field(default_factory=dict)
    silent: bool = False

    def file_sha256(self, container: str, path: str) -> str | None:
        if self.silent:
            raise BackendError("the Engine has gone")
        return self.files.get(path)


def test_every_pinned_file_by_its_path_in_the_container() -> None:
    assert dict(patches(PLAN)) == {"/usr/lib/site.py": HOOK, "/w/hook.py": HOOK, "/w/map.json": MAP}


def test_files_are_kept_different_or_missing() -> None:
    backend = Open(files={"/usr/lib/site.py": HOOK, "/w/hook.py": MAP})
    found = check_patches(PLAN, "id", backend)
    assert [(one.state, one.good) for one in found] == [("kept", True), ("different", False), ("missing", False)]
    assert found[1].sentence() == f"different: sha256 of /w/hook.py in the container (expected {HOOK}, found {MAP})"


def test_where_nobody_can_look_nothing_is_held_against_it() -> None:
    assert {one.state for one in check_patches(PLAN, "id", FakeBackend())} == {"unknown"}
    (one, *_) = check_patches(PLAN, "id", Open(silent=True))
    assert (one.state, one.found) == ("unknown", "the Engine has gone")


def test_without_pins_there_is_nothing_to_check() -> None:
    assert check_patches(plan(), "id", Open()) == ()
