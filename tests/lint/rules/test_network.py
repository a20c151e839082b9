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


CASES_PORTS = (
    Case(
        "PRT001",
        "other",
        bad={'["8105:8000"]': '["8105:8000", "8106-8000"]'},
        said=Said("error", "`8106-8000` is not HOST:CONTAINER", 'write "8021:8000", say', 19, 24, "container.ports.1"),
        good={'["8105:8000"]': '["127.0.0.1:8105:8000/tcp", "[::1]:8105:8000"]'},
    ),
    Case(
        "PRT002",
        "other",
        bad={'["8105:8000"]': '["8105:8000", "127.0.0.1:8105:9000"]'},
        said=Said(
            "error",
            "`127.0.0.1:8105:9000` and `8105:8000` want the same port of the host",
            "change one of them",
            19,
            24,
            "container.ports.1",
        ),
        good={'["8105:8000"]': '["127.0.0.2:8105:8000", "127.0.0.1:8105:9000"]'},
    ),
    Case(
        "PRT003",
        "other",
        bad={"  ipc: host\n": "  ipc: host\n  network: host\n"},
        said=Said(
            "warning",
            "with network host the ports are discarded: the engine listens on 8000",
            "remove ports, or network",
            20,
            3,
            "container.ports",
        ),
        good={"  ipc: host\n": "  ipc: host\n  network: bridge\n"},
    ),
    Case(
        "PRT004",
        "other",
        bad={"    port: 8000\n": "    port: 8001\n"},
        said=Said(
            "warning",
            "no published port leads to the engine's 8001",
            'add ports: ["8001:8001"], or network: host',
            19,
            3,
            "container.ports",
        ),
        good={"    port: 8000\n": ""},
    ),
    Case(
        "PRT005",
        "other",
        bad={"    port: 8000\n": "    host: 127.0.0.1\n    port: 8000\n"},
        said=Said(
            "warning",
            "on 127.0.0.1 the engine hears only its own container",
            "write 0.0.0.0",
            34,
            11,
            "engine.options.host",
        ),
        good={"    port: 8000\n": "    host: 0.0.0.0\n    port: 8000\n"},
    ),
)


@pytest.mark.parametrize("case", CASES_PORTS, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour_ports(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)
