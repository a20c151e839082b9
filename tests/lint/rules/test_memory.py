from pathlib import Path

import pytest

from tests.lint.samples import KNOWN, Case, Said, changed, judge, lint

CASES = (
    Case(
        "MEM001",
        "known",
        bad={"cpu_offload_gb: 70": "cpu_offload_gb: 48"},
        said=Said(
            "error",
            (
                "offload 48 at 0.97 leaves -7.78 GiB of KV cache, and one request of 1,048,576 "
                "tokens needs 2.20 (computed)"
            ),
            "offload more, or raise gpu_memory_utilization",
            30,
            21,
            "engine.options.cpu_offload_gb",
        ),
        good={"cpu_offload_gb: 70": "cpu_offload_gb: 62"},
    ),
    Case(
        "MEM002",
        "known",
        bad={"cpu_offload_gb: 70": "cpu_offload_gb: 60", "utilization: 0.97": "utilization: 0.9595"},
        said=Said(
            "warning",
            (
                "offload 60 at 0.9595 leaves 2.26 GiB of KV cache, and one request of 1,048,576 "
                "tokens needs 2.20 (computed)"
            ),
            "offload more, or raise gpu_memory_utilization",
            30,
            21,
            "engine.options.cpu_offload_gb",
        ),
        good={"cpu_offload_gb: 70": "cpu_offload_gb: 60"},
    ),
    Case(
        "MEM003",
        "known",
        bad={"cpu_offload_gb: 70": "cpu_offload_gb: 120"},
        said=Said(
            "warning",
            ("120.2 GiB of weights and 188.8 GiB of tables hold 309 to 484 GiB of host memory, which has 494.5"),
            "lower cpu_offload_gb",
            30,
            21,
            "engine.options.cpu_offload_gb",
        ),
        good={"cpu_offload_gb: 70": "cpu_offload_gb: 110"},
    ),
    Case(
        "MEM004",
        "other",
        bad={"utilization: 0.9": "utilization: 0.99"},
        said=Said(
            "warning",
            "gpu_memory_utilization 0.99 leaves too little for the driver and CUDA",
            "write at most 0.97",
            33,
            29,
            "engine.options.gpu_memory_utilization",
        ),
        good={"utilization: 0.9": "utilization: 0.97"},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)


@pytest.mark.parametrize(
    ("gigabytes", "codes"), [(40, ["REC001"]), (50, ["MEM001"]), (55, ["REC001"]), (58, []), (253, ["MEM003"])]
)
def test_offloads_at_a_million_tokens(tmp_path: Path, gigabytes: int, codes: list[str]) -> None:
    found = lint(tmp_path, changed(KNOWN, {"cpu_offload_gb: 70": f"cpu_offload_gb: {gigabytes}"}))
    assert [(d.code, d.severity) for d in found] == [(code, "error") for code in codes]


def test_where_the_arithmetic_does_not_apply(tmp_path: Path) -> None:
    assert (
        lint(tmp_path, changed(KNOWN, {"cpu_offload_gb: 70": "cpu_offload_gb: 40", "{name: GB300}": "{name: H200}"}))
        == []
    )


def test_an_overhead_that_the_recipe_states_decides(tmp_path: Path) -> None:
    stated = {"title: Garden lane": "title: Garden lane\nmemory: {overhead_gib: 290, basis: measured}"}
    assert lint(tmp_path, changed(KNOWN, {"cpu_offload_gb: 70": "cpu_offload_gb: 52", **stated})) == []
    (found,) = lint(tmp_path, changed(KNOWN, {"cpu_offload_gb: 70": "cpu_offload_gb: 44", **stated}))
    assert (found.code, found.severity) == ("MEM001", "error")


def test_what_nothing_was_measured_with_is_a_warning(tmp_path: Path) -> None:
    option = {"    port: 30777\n": "    block_size: 64\n    port: 30777\n"}
    (found,) = lint(tmp_path, changed(KNOWN, {"cpu_offload_gb: 70": "cpu_offload_gb: 48", **option}))
    assert (found.code, found.severity) == ("MEM001", "warning")
    assert found.message.endswith("(assumed)")
