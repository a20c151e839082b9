import pytest

from gb300serve.engines.registry import ENGINES, engine


def test_engines_by_name() -> None:
    assert {name: engine(name).name for name in ENGINES} == {"sglang": "sglang", "vllm": "vllm"}


def test_other_names_are_not_engines() -> None:
    with pytest.raises(KeyError, match="tgi"):
        engine("tgi")
