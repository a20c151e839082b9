from gb300serve.boot.machine import BootMachine
from gb300serve.boot.receipts import ExpectedLine, LearnedBoot, as_recipe
from gb300serve.simulator.engine.settings import SimulatorEnvironment
from tests.support.simulated import PIN_HOOK, V14, boot_script, said


def lesson(lines: list[str]) -> LearnedBoot:
    machine, found = BootMachine(), LearnedBoot()
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
        ExpectedLine("secs, took {value} GiB", 1.52, 0.1, basis="here"),
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
