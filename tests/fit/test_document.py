from gb300serve.fit.checkpoint import checkpoints
from gb300serve.fit.request import Demand, demand_of
from gb300serve.fit.result import FitResult, Step, answer, document, equal_steps, sweep_document

FLASH = checkpoints()[0]
V14 = next(boot for boot in FLASH.boots if boot.name == "v14")


def asked(gigabytes: int) -> Demand:
    return demand_of({**V14.settings, "cpu_offload_gb": gigabytes}, V14.engine_version)


def found(gigabytes: int) -> FitResult:
    return answer(FLASH, asked(gigabytes), changed=True)


def test_keys_and_their_order() -> None:
    shown = document("a/b", asked(60), found(60), ())
    assert list(shown) == [
        "schema", "verdict", "hbm", "host", "kv_cache_tokens", "concurrency_at_max_len", "basis", "diagnostics",
        "details",
    ]  # fmt: skip
    assert shown["hbm"] == {
        "visible_gib": 250.6865, "usable_gib": 242.3192, "weights_gib": 225.2639, "overhead_gib": 12.1767,
        "kv_cache_gib": 4.8786,
    }  # fmt: skip
    assert shown["host"] == {
        "asked_gib": 60.0, "offloaded_gib": 61.1719, "engram_gib": 188.8305, "resident_gib": 250.0024,
        "available_gib": 494.5,
    }  # fmt: skip


def test_nothing_known_keeps_every_key() -> None:
    shown = document("a/b", Demand(cpu_offload_gb=10.0), None, ())
    assert (shown["verdict"], shown["basis"], shown["details"]) == ("unknown", "assumed", {"recipe": "a/b"})
    assert shown["hbm"] == {
        "visible_gib": 250.6865, "usable_gib": 229.8285, "weights_gib": None, "overhead_gib": None,
        "kv_cache_gib": None,
    }  # fmt: skip
    assert shown["host"] == {
        "asked_gib": 10.0, "offloaded_gib": None, "engram_gib": None, "resident_gib": None, "available_gib": None,
    }  # fmt: skip


def test_steps_that_come_to_the_same_launch() -> None:
    steps = [Step(str(value), found(value)) for value in (56, 57, 58, 61, 62)]
    assert equal_steps(steps) == [False, False, True, True, False]
    rows = sweep_document("engine.options.cpu_offload_gb", steps)
    assert [(row["value"], row["offloaded_gib"], row["verdict"], row["same_as_before"]) for row in rows] == [
        ("56", 56.9531, "refused", False),
        ("57", 61.1719, "fits", False),
        ("58", 61.1719, "fits", True),
        ("61", 61.1719, "fits", True),
        ("62", 63.2812, "fits", False),
    ]


def test_steps_without_an_answer() -> None:
    rows = sweep_document("a", [Step("1", None), Step("2", None)])
    assert [(row["verdict"], row["kv_cache_gib"], row["same_as_before"]) for row in rows] == [
        ("unknown", None, False),
        ("unknown", None, True),
    ]
