from dataclasses import replace

import pytest

from gb300serve.autotune.pins import Pin, Verified, verify
from gb300serve.autotune.sets import Expectation, TuningSet, read_content
from tests.support.fake_cache import content

NAME = "9ac7b387" + "0" * 56
WANTED = Expectation("9ac7b387", 210, "measured", 4440.0)
SET = TuningSet("0.6.18", "103a", NAME, "autotune_configs.json", 1.0, read_content(content(210)))
PIN = Pin("l/v14", "0.6.18", "103a", NAME, SET.file, 210, read_content(content(210)).sha256, 1.0)


def test_the_expected_set_is_ready() -> None:
    assert verify(WANTED, None, (SET,), "0.30.0") == Verified("ready", (), SET)
    assert verify(WANTED, PIN, (SET,), "0.30.0") == Verified("ready", (), SET)


def test_a_set_that_grew_is_ready_and_says_so() -> None:
    grown = replace(SET, content=read_content(content(231)))
    found = verify(WANTED, None, (grown,), "0.30.0")
    assert found == Verified("ready", ("231 configurations, 210 when it was recorded: the file grows",), grown)


def test_a_pinned_set_may_not_change() -> None:
    grown = replace(SET, content=read_content(content(231)))
    found = verify(WANTED, PIN, (grown,), "0.30.0")
    assert found.state == "differs"
    assert found.remarks[0].endswith("210 configurations then and 231 now")
    assert found.remarks[0].startswith(f"not the pinned file: sha256 {PIN.sha256[:12]} was pinned")


def test_a_smaller_set_is_tuned_on() -> None:
    small = replace(SET, content=read_content(content(189)))
    remark = "189 configurations, the recipe expects 210: the rest will be tuned"
    assert verify(WANTED, None, (small,), "0.30.0") == Verified("differs", (remark,), small)


def test_a_missing_set_says_its_price() -> None:
    found = verify(WANTED, None, (), "0.30.0")
    assert found == Verified("missing", ("no set 9ac7b387 is there: the boot will tune, about 74 minutes",))


def test_a_set_under_the_name_of_another_version_is_not_found_by_this_one() -> None:
    found = verify(WANTED, None, (SET,), "0.32.0")
    assert found.state == "missing"
    assert found.remarks[1] == (
        f"flashinfer_autotune_cache/0.6.18/103a/{NAME}/autotune_configs.json is there, "
        "but this engine version looks for autotune_configs_dp0_rank0.json: seed it under that name"
    )


def test_a_set_of_another_environment_makes_every_boot_tune() -> None:
    foreign = replace(SET, content=read_content(content(210, "0.6.17")))
    found = verify(WANTED, None, (foreign,), "0.30.0")
    assert found.state == "differs"
    assert found.remarks[0].endswith("every boot tunes until it is removed")


@pytest.mark.parametrize(
    ("problem", "state"), [("it belongs to another user: sudo sha256sum x", "unknown"), ("not JSON: x", "missing")]
)
def test_what_cannot_be_read(problem: str, state: str) -> None:
    closed = replace(SET, content=None, problem=problem)
    assert verify(WANTED, None, (closed,), "0.30.0") == Verified(state, (problem,), closed)


def test_without_a_record_nobody_knows() -> None:
    found = verify(Expectation(), None, (SET,), "0.30.0")
    assert (found.state, found.found) == ("unknown", None)


def test_a_version_that_keeps_its_sets_elsewhere() -> None:
    found = verify(WANTED, None, (SET,), "0.33.0")
    assert found.state == "unknown"
    assert "/root/.cache/flashinfer/autotune/v2" in found.remarks[0]
