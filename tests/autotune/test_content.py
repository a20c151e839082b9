import hashlib

import pytest

from gb300serve.autotune.sets import Content, NotASetError, differences, flashinfer_of, read_content

ENVIRONMENT = b'"_metadata": {"flashinfer_version": "0.6.18", "cuda_version": "13.0", "sm": 103}'
SET = b"{" + ENVIRONMENT + b', "moe, 1": ["r", 3], "moe, 2": ["r", 1]}'


def test_kernels_are_counted_and_the_environment_is_not_one() -> None:
    metadata = {"flashinfer_version": "0.6.18", "cuda_version": "13.0", "sm": "103"}
    assert read_content(SET) == Content(2, hashlib.sha256(SET).hexdigest(), metadata)


def test_a_set_without_environment() -> None:
    assert read_content(b"{}").metadata == {}


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"\xff"])
def test_what_is_no_set(data: bytes) -> None:
    with pytest.raises(NotASetError):
        read_content(data)


def test_environments_are_compared_where_both_speak() -> None:
    one, other = {"cublas": "13.0", "gpu": "GB300"}, {"cublas": "13.1", "cudnn": "9"}
    assert differences(one, other) == ("cublas: 13.0 against 13.1",)


def test_the_version_of_the_library_has_two_names() -> None:
    assert flashinfer_of({"flashinfer": "0.6.18"}) == flashinfer_of({"flashinfer_version": "0.6.18"}) == "0.6.18"
    assert flashinfer_of({}) is None
