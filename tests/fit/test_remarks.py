from dataclasses import replace

from gb300serve.fit.checkpoint import Checkpoint, checkpoints
from gb300serve.fit.request import Demand, SpeculationRequest, demand_of
from gb300serve.fit.result import answer, remarks

FLASH = checkpoints()[0]
V14 = next(boot for boot in FLASH.boots if boot.name == "v14")
DEMAND = demand_of(V14.settings, V14.engine_version)


def said(demand: Demand, known: Checkpoint = FLASH) -> list[tuple[str, str, str]]:
    return [(one.code, one.severity, one.message) for one in remarks(answer(known, demand, changed=True), known.boots)]


def test_nothing_beside_what_is_computed() -> None:
    assert said(DEMAND) == []


def test_settings_that_no_boot_had_are_named() -> None:
    start, end = "nothing was measured with these settings (", "): the nearest boots stand in"
    for demand, what in (
        (replace(DEMAND, max_num_seqs=2400), "max_num_seqs 2,400"),
        (replace(DEMAND, engine_version="0.32.0"), "engine_version 0.32.0"),
        (replace(DEMAND, others=(("language_model_only", "true"),)), "other_options language_model_only true"),
        (replace(DEMAND, speculation=SpeculationRequest("dspark", 3)), "draft_tokens 3"),
        (replace(DEMAND, max_model_len=262144), "max_model_len 262,144"),
    ):
        assert said(demand) == [("FIT002", "note", start + what + end)]


def test_nothing_measured_at_all() -> None:
    assert [one[:2] for one in said(DEMAND, replace(FLASH, boots=()))] == [("FIT001", "warning")]


def test_a_pattern_that_matches_nothing_and_what_comes_of_it() -> None:
    assert said(replace(DEMAND, cpu_offload_params=("experts.*",))) == [
        ("FIT003", "error", "`experts.*` matches no parameter: the engine moves nothing for it, without a word"),
        ("FIT004", "error", "286.44 GiB of weights stay on a GPU of 250.69 GiB"),
    ]


def test_host_memory() -> None:
    assert said(replace(DEMAND, cpu_offload_gb=200))[0][:2] == ("FIT005", "warning")
    assert said(replace(DEMAND, cpu_offload_gb=300)) == [
        (
            "FIT005",
            "error",
            "442.0 to 736.0 GiB of host memory: more than 440 GiB never held, the kernel kills it",
        )
    ]
