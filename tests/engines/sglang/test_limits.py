import pytest

from gb300serve.core.values import Value
from gb300serve.engines.base import Problem
from gb300serve.engines.sglang.engine import check_limits


def outside(key: str, said: str, wanted: str, hint: str | None = None) -> Problem:
    return Problem((key,), "OPT007", f"{key} is {said}, not {wanted}", hint or f"write a number {wanted}")


REFUSED: list[tuple[dict[str, Value], Problem]] = [
    ({"tp_size": 0}, outside("tp_size", "0", "at least 1")),
    ({"max_running_requests": 0}, outside("max_running_requests", "0", "at least 1")),
    ({"speculative_dflash_block_size": 0}, outside("speculative_dflash_block_size", "0", "at least 1")),
    ({"port": 70000}, outside("port", "70000", "between 0 and 65535")),
    ({"context_length": 0}, outside("context_length", "0", "at least 1")),
    (
        {"mem_fraction_static": 85},
        outside("mem_fraction_static", "85", "above 0 and below 1", "a fraction is meant: write 0.85"),
    ),
    ({"mem_fraction_static": 1}, outside("mem_fraction_static", "1", "above 0 and below 1")),
    (
        {"served_model_name": "glm:flash"},
        Problem(
            ("served_model_name",),
            "OPT014",
            "served_model_name is 'glm:flash', and SGLang takes what follows a colon for an adapter",
            "write glm-flash",
        ),
    ),
]


@pytest.mark.parametrize(("options", "problem"), REFUSED)
def test_refused(options: dict[str, Value], problem: Problem) -> None:
    assert list(check_limits(options)) == [problem]


def test_taken() -> None:
    options: dict[str, Value] = {
        "tp_size": 1,
        "port": 30001,
        "mem_fraction_static": 0.9,
        "context_length": "1Mi",
        "served_model_name": "s3://bucket/model",
        "chunked_prefill_size": -1,
    }
    assert list(check_limits(options)) == []
