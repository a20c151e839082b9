import pytest

from gb300serve.boot.receipts import CheckedReceipt, ExpectedLine, LearnedBoot, ReceiptBook, as_recipe
from gb300serve.engines.logs import boot_machine
from gb300serve.simulator.engine.settings import SimulatorEnvironment
from tests.support.simulated import PIN_HOOK, V14, boot_script, said

OFFLOADED = ExpectedLine("Total CPU offloaded parameters: {value}", 61.17, 0.01, missing="fail")
KV = ExpectedLine("Available KV cache memory: {value} GiB", 4.87, 0.03)


def checked(*expected: ExpectedLine, lines: tuple[str, ...]) -> tuple[CheckedReceipt, ...]:
    book = ReceiptBook(expected)
    for line in lines:
        book.feed(line)
    return book.results()


def states(*expected: ExpectedLine, lines: tuple[str, ...]) -> list[str]:
    return [one.state for one in checked(*expected, lines=lines)]


def test_a_figure_within_its_tolerance_is_kept() -> None:
    line = "(EngineCore pid=364) INFO 11-29 19:52:43 [uva.py:68] Total CPU offloaded parameters: 61.17"
    (one,) = checked(OFFLOADED, lines=("x", line))
    assert one == CheckedReceipt(OFFLOADED.line, "kept", "fail", expected=61.17, found=61.17, tolerance=0.01, text=line)
    assert one.sentence() == "kept: Total CPU offloaded parameters: {value} (61.17)"


@pytest.mark.parametrize(
    ("gib", "state"), [("4.84", "kept"), ("4.90", "kept"), ("4.83", "different"), ("-6.96", "different")]
)
def test_the_tolerance_is_absolute_and_figures_may_be_negative(gib: str, state: str) -> None:
    assert states(KV, lines=(f"Available KV cache memory: {gib} GiB",)) == [state]


def test_a_different_figure_says_both() -> None:
    (one,) = checked(KV, lines=("Available KV cache memory: 0.65 GiB",))
    assert not one.good
    assert one.sentence() == "different: Available KV cache memory: {value} GiB (expected 4.87 ± 0.03, found 0.65)"


def test_a_line_that_never_comes_is_missing() -> None:
    (one,) = checked(OFFLOADED, lines=("something else",))
    assert one.sentence() == "missing: Total CPU offloaded parameters: {value} (expected 61.17)"


def test_a_line_that_comes_twice_is_kept_by_whichever_is_right() -> None:
    first, second = (ExpectedLine("took {value} GiB", value) for value in (1.30, 1.10))
    lines = ("Graph capturing finished in 36 secs, took 1.30 GiB", "Graph capturing finished in 14 secs, took 1.10 GiB")
    assert states(first, second, lines=lines) == ["kept", "kept"]


def test_thousands_are_read() -> None:
    tokens = ExpectedLine("GPU KV cache size: {value} tokens", 2502950, 12515)
    assert states(tokens, lines=("GPU KV cache size: 2,504,891 tokens, Maximum concurrency",)) == ["kept"]


def test_fixed_text_needs_no_figure() -> None:
    text = ExpectedLine("Using DeepSeek's fp8_ds_mla KV cache format")
    assert states(text, lines=()) == ["missing"]
    (one,) = checked(text, lines=("Using DeepSeek's fp8_ds_mla KV cache format. ",))
    assert one.sentence() == "kept: Using DeepSeek's fp8_ds_mla KV cache format"


def test_forbidden_text_is_kept_by_silence() -> None:
    text = ExpectedLine("hook FAILED", forbidden=True, missing="fail")
    assert states(text, lines=("all is well",)) == ["kept"]
    (one,) = checked(text, lines=("PIN_HOT hook FAILED to install: No module",))
    assert one.sentence() == "forbidden, but printed: hook FAILED"


def test_a_forbidden_figure_forbids_that_figure_only() -> None:
    none = ExpectedLine("Total CPU offloaded parameters: {value}", 0.0, forbidden=True)
    assert states(none, lines=("Total CPU offloaded parameters: 61.17",)) == ["kept"]
    assert states(none, lines=("Total CPU offloaded parameters: 0.00",)) == ["forbidden"]


def test_characters_of_expressions_mean_themselves() -> None:
    assert states(ExpectedLine("(expect ~{value}"), lines=("(expect ~206.6 / ~62.4)",)) == ["kept"]


def test_another_boot_in_the_log_begins_anew() -> None:
    book = ReceiptBook((OFFLOADED,))
    book.feed("Total CPU offloaded parameters: 61.17")
    book.restart()
    assert [receipt.state for receipt in book.results()] == ["missing"]


def test_json_names_everything() -> None:
    (one,) = checked(KV, lines=("Available KV cache memory: 4.87 GiB",))
    assert one.as_json() == {
        "name": "Available KV cache memory: {value} GiB", "kind": "line", "state": "kept", "missing": "degrade",
        "expected": 4.87, "tolerance": 0.03, "found": 4.87, "text": "Available KV cache memory: 4.87 GiB",
    }  # fmt: skip


def lesson(lines: list[str]) -> LearnedBoot:
    machine, found = boot_machine(), LearnedBoot()
    for line in lines:
        found.take(machine.feed(line))
    return found


def test_what_a_boot_of_v14_teaches() -> None:
    found = lesson(said(boot_script(V14)))
    assert found.receipts("here") == (
        ExpectedLine("Total CPU offloaded parameters: {value}", 61.17, 0.01, "fail", basis="here"),
        ExpectedLine("Engram table offloaded to pinned host memory: {value} rows", 384006168.0, basis="here"),
        ExpectedLine("Using DeepSeek's fp8_ds_mla KV cache format", basis="here"),
        ExpectedLine("Available KV cache memory: {value} GiB", 4.87, 0.05, basis="here"),
        ExpectedLine("GPU KV cache size: {value} tokens", 2321223.0, 11606.0, basis="here"),
        ExpectedLine("secs, took {value} GiB", 1.08, 0.1, basis="here"),
        ExpectedLine("Loaded {value} configs", 210.0, basis="here"),
    )
    tuning = found.tuning("here")
    assert tuning is not None
    assert (tuning["identity"][:8], tuning["configs"], tuning["basis"]) == ("9ac7b387", 210, "here")


def test_a_hook_is_taught_by_what_it_prints() -> None:
    found = lesson(said(boot_script(V14, SimulatorEnvironment(env=PIN_HOOK))))
    lines = [one.line for one in found.receipts("here")]
    assert lines[-3:] == ["PIN_HOT rehome done layers={value} ", "HBM_expert={value}GiB", "pinned_expert={value}GiB"]


def test_only_the_last_boot_of_a_log_teaches() -> None:
    text = said(boot_script(V14))
    assert lesson([*text, *text]).receipts("here") == lesson(text).receipts("here")


def test_a_log_without_a_tuning_cache_teaches_none() -> None:
    assert lesson(["nothing"]).tuning("here") is None
    assert as_recipe((), None) == {"boot": {"receipts": []}}


def test_as_a_recipe_says_it() -> None:
    lines = (ExpectedLine("a {value}", 210.0, 0.0, "fail", basis="b"), ExpectedLine("text", basis="b"))
    assert as_recipe(lines, {"identity": "9ac7b387"}) == {
        "boot": {
            "receipts": [
                {"line": "a {value}", "value": 210, "tolerance": 0, "missing": "fail", "basis": "b"},
                {"line": "text", "basis": "b"},
            ],
            "tuning_cache": {"identity": "9ac7b387"},
        }
    }
