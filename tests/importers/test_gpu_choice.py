from typing import Any

import pytest

from gb300serve.importers.docker_options import beside_devices, by_devices, from_gpus


@pytest.mark.parametrize(
    ("value", "chosen"),
    [
        ("all", "all"),
        ("-1", "all"),
        ("3", 3),
        ("0", None),
        ("", None),
        ("none", None),
        ("device=0", {"index": [0]}),
        ('"device=0,2"', {"index": [0, 2]}),
        ("device=0,2", {"index": [0, 2]}),
        ('"device=GPU-a,GPU-b"', {"uuid": ["GPU-a", "GPU-b"]}),
        ("'\"device=GPU-a\"'", {"uuid": "GPU-a"}),
        ('"device=GPU-a",capabilities=utility', {"uuid": "GPU-a"}),
        ("all,capabilities=utility", "all"),
        ("count=2", 2),
        ("a\nb", None),
    ],
)
def test_the_value_of_gpus(value: str, chosen: Any) -> None:
    assert from_gpus(value) == chosen


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["all"], "all"),
        (["void"], None),
        ([], None),
        (["0", "1"], {"index": [0, 1]}),
        (["MIG-a"], {"uuid": "MIG-a"}),
        (["0", "GPU-a"], {"uuid": ["0", "GPU-a"]}),
    ],
)
def test_devices(names: list[str], chosen: Any) -> None:
    assert by_devices(names) == chosen


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("all", []),
        ("device=0,1", []),
        ("'\"device=0,1\",capabilities=utility'", ["capabilities=utility"]),
        ('all,"capabilities=compute,utility",driver=nvidia', ["capabilities=compute,utility", "driver=nvidia"]),
        ("a\nb", []),
    ],
)
def test_what_stands_beside_the_devices(value: str, said: list[str]) -> None:
    assert beside_devices(value) == said
