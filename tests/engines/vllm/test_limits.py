import pytest

from gb300serve.core.values import Value, WrittenFloat
from gb300serve.engines.vllm.engine import LEAST, check_limits

OUTSIDE: list[tuple[str, Value, str, str]] = [
    ("gpu_memory_utilization", 97, "above 0 and at most 1", "a fraction is meant: write 0.97"),
    ("gpu_memory_utilization", WrittenFloat("92.5"), "above 0 and at most 1", "a fraction is meant: write 0.925"),
    ("gpu_memory_utilization", 0, "above 0 and at most 1", "write a number above 0 and at most 1"),
    ("gpu_memory_utilization", 970, "above 0 and at most 1", "write a number above 0 and at most 1"),
    ("port", 70000, "between 0 and 65535", "write a number between 0 and 65535"),
    ("port", -1, "between 0 and 65535", "write a number between 0 and 65535"),
    ("max_model_len", 0, "at least 1, or auto", "write a number at least 1, or auto"),
    ("max_model_len", "0", "at least 1, or auto", "write a number at least 1, or auto"),
    ("cpu_offload_gb", -5, "at least 0", "write a number at least 0"),
]


@pytest.mark.parametrize(("key", "value", "wanted", "hint"), OUTSIDE)
def test_outside(key: str, value: Value, wanted: str, hint: str) -> None:
    (problem,) = check_limits({key: value})
    said = f'"{value}"' if isinstance(value, str) else str(value)
    assert (problem.path, problem.code, problem.message, problem.hint) == (
        (key,),
        "OPT007",
        f"{key} is {said}, not {wanted}",
        hint,
    )


def test_every_least_value_is_inside_and_one_less_is_not() -> None:
    assert list(check_limits(dict(LEAST))) == []
    below = {key: least - 1 for key, least in LEAST.items()}
    assert [problem.path[0] for problem in check_limits(below)] == list(LEAST)


def test_ends_are_inside() -> None:
    for options in ({"gpu_memory_utilization": 1, "port": 0}, {"port": 65535, "max_model_len": -1}, {}):
        assert list(check_limits(options)) == []


def test_other_types_are_left_to_the_table() -> None:
    assert list(check_limits({"port": "${secret:PORT}", "gpu_memory_utilization": True, "max_model_len": [1]})) == []
