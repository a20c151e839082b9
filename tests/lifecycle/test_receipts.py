from dataclasses import replace

import pytest

from gb300serve.boot.events import BootBegan
from gb300serve.boot.receipts import CheckedReceipt, ExpectedLine
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.receipts import DegradedError, Witness, binding, refuse_degraded, verdict
from tests.support.fake_backend import FakeBackend
from tests.support.launches import plan

OFFLOADED = ExpectedLine("Total CPU offloaded parameters: {value}", 61.17, 0.01, missing="fail")
KV = ExpectedLine("Available KV cache memory: {value} GiB", 4.87, 0.03)
V14 = Launch(plan(), receipts=(OFFLOADED, KV))
GOOD = CheckedReceipt("a", "kept")
DIFFERENT = CheckedReceipt("b", "different", expected=4.87, found=0.65)
MISSING = CheckedReceipt("c", "missing", missing="fail")
ARGUMENT = CheckedReceipt("engine argument x", "different", kind="arguments", expected="1", found="2")


def test_lines_then_arguments() -> None:
    witness = Witness(V14)
    witness.feed("(APIServer pid=1) INFO 11-29 19:50:05 [a.py:1] non-default args: {'model_tag': '/model', 'model': "
                 "'/model', 'served_model_name': ['dsv41-flash-uva'], 'port': 30006}")  # fmt: skip
    witness.feed("Total CPU offloaded parameters: 61.17")
    found = witness.results("id", FakeBackend())
    assert [(one.kind, one.state) for one in found] == [("line", "kept"), ("line", "missing"), ("arguments", "kept")]


def test_a_boot_that_begins_again_begins_anew() -> None:
    witness = Witness(V14)
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
    assert verdict(receipts, V14) == expected


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
    assert binding(replace(V14, overrides=(override,))) is binds


def test_a_changed_launch_is_not_judged_by_lines_but_by_its_arguments() -> None:
    changed = replace(V14, overrides=("engine.options.cpu_offload_gb=70",))
    assert verdict((DIFFERENT, MISSING), changed) == "kept"
    assert verdict((DIFFERENT, ARGUMENT), changed) == "degraded"


def test_degraded_is_said_by_name() -> None:
    refuse_degraded(V14, (GOOD,))
    with pytest.raises(DegradedError) as caught:
        refuse_degraded(V14, (GOOD, DIFFERENT))
    assert caught.value.exit_code == 9
    assert caught.value.message == (
        "DEGRADED: dsv41-vllm serves, but its boot did not show what a good one shows\n"
        "  different: b (wanted 4.87, found 0.65)"
    )
    assert caught.value.hint == (
        "it keeps running; see gb300serve receipts deepseek-v4.1-flash/v14; "
        "stop it: gb300serve down deepseek-v4.1-flash/v14"
    )
