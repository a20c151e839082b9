"""What is said of the tuning set after READY."""

import pytest

from gb300serve.app.launch import tuning_lines
from gb300serve.autotune.pins import Verified
from gb300serve.autotune.sets import TuningSet

FOUND = TuningSet("0.6.18", "103a", "9ac7b387" * 8, "autotune_configs.json")


@pytest.mark.parametrize(
    ("verified", "lines"),
    [
        (Verified("unknown", ("/c/x belongs to another user",), FOUND), [("/c/x belongs to another user", "dim")]),
        (Verified("missing", ("no set 9ac7b387 is there",)), [("no set 9ac7b387 is there", "warning")]),
    ],
)
def test_what_is_said(verified: Verified, lines: list[tuple[str, str]]) -> None:
    wanted = [(f"tuning cache, for the next boot: {text}", style) for text, style in lines]
    assert list(tuning_lines(verified)) == wanted
