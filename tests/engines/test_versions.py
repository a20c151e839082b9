from itertools import pairwise

import pytest

from gb300serve.engines.tables import public, version_key

ORDER = [
    "0.1.dev20904+g179dd0fa9", "0.9", "0.29.0.dev3", "0.29.0a1", "0.29.0rc1.dev2", "0.29.0rc1", "0.29.0rc2", "0.29.0",
    "0.29.0+cpu", "0.29.0.post1", "0.29.1", "0.30.0", "0.100.0", "1.0",
]  # fmt: skip


def test_order_is_that_of_pep_440() -> None:
    keys = [key for key in map(version_key, ORDER) if key is not None]
    assert len(keys) == len(ORDER)
    assert all(before < after for before, after in pairwise(keys))


@pytest.mark.parametrize("same", [("0.30", "0.30.0"), ("v0.30.0", "0.30.0"), (" 0.30.0", "0.30.0.0")])
def test_spellings_of_one_version(same: tuple[str, str]) -> None:
    assert version_key(same[0]) == version_key(same[1])


@pytest.mark.parametrize("text", ["", "latest", "0.30.x", "nightly-abc", "1..2", "1" * 5000, "0.٣"])
def test_no_version(text: str) -> None:
    assert version_key(text) is None


def test_public_part() -> None:
    assert public("0.32.0+cpu") == "0.32.0"
