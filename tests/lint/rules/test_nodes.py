from pathlib import Path

import pytest

from tests.lint.samples import Case, Said, judge

HOST = {'  ports: ["8105:8000"]\n': "  network: host\n"}
TWO = {"container:\n  name: orchard\n": "nodes: 2\ncontainer:\n  name: orchard\n"}

CASES = (
    Case(
        "NOD001",
        "other",
        bad={**HOST, **TWO},
        said=Said(
            "error",
            "the model is split over 1 x 1 GPUs (tensor x pipeline), and 2 nodes with 1 each have 2",
            "write pipeline_parallel_size: 2, and tensor_parallel_size: 1",
            15,
            8,
            "nodes",
        ),
        good={**HOST, **TWO, "    port: 8000\n": "    pipeline_parallel_size: 2\n    port: 8000\n"},
    ),
    Case(
        "NOD001",
        "sglang",
        bad={"container:\n": "nodes: 2\ncontainer:\n"},
        said=Said(
            "error",
            "the model is split over 1 x 1 GPUs (tensor x pipeline), and 2 nodes with 1 each have 2",
            "write pp_size: 2, and tp_size: 1",
            15,
            8,
            "nodes",
        ),
        good={"container:\n": "nodes: 2\ncontainer:\n", "    port: 30778\n": "    pp_size: 2\n    port: 30778\n"},
    ),
    Case(
        "NOD002",
        "other",
        bad={**TWO, "    port: 8000\n": "    pipeline_parallel_size: 2\n    port: 8000\n"},
        said=Said(
            "warning",
            "the machines of one model cannot reach each other",
            "write network: host",
            16,
            1,
            "container.network",
        ),
        good={**HOST, **TWO, "    port: 8000\n": "    tensor_parallel_size: 2\n    port: 8000\n"},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.code}-{case.base}")
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)
