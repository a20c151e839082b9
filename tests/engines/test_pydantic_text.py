from dataclasses import field

import pytest
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from gb300serve.core.values import Value
from gb300serve.engines.parse import unexpected, validation_text


@dataclass(config=ConfigDict(extra="forbid"))
class EngramConfig:
    cpu_offload: bool = field(default=True)


@pytest.mark.parametrize("value", [1, "x", None, [1], {"a": 1}])
def test_the_text_is_that_of_pydantic_itself(value: Value) -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(EngramConfig).validate_python({"cpu_ofload": value})
    ours = validation_text("EngramConfig", [unexpected("cpu_ofload", value)])
    assert ours.replace("/2.13/", "/V/") == str(caught.value).replace(f"/{pydantic_version()}/", "/V/")


def pydantic_version() -> str:
    """Major and minor, as pydantic's links carry them."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(int).validate_python("x")
    return caught.value.errors()[0]["url"].split("/")[3]
