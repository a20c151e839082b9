from dataclasses import replace

import pytest

from gb300serve.autotune.pins import FORMAT, CacheVerdict, Pin, parse_pins, seed_set, verify_set, with_pin
from gb300serve.autotune.sets import CacheDeniedError, ExpectedSet, InvalidSetError, TuningSet, parse_set, set_path
from tests.support.fake_cache import CACHE, FLASHINFER, FakeCacheFiles, content

PIN = Pin("lane/v14", "0.6.18", "103a", "9ac7b387", "autotune_configs.json", 210, "ab" * 32, 1_796_000_000.0)


def test_a_pin_comes_back_as_it_was() -> None:
    document = with_pin({}, PIN)
    assert document["format"] == FORMAT
    assert parse_pins(document) == {"lane/v14": PIN}
    assert PIN.copy_name == "ab" * 32 + ".json"


def test_a_release_has_one_pin() -> None:
    other = replace(PIN, release="lane/v11")
    document = with_pin(with_pin(with_pin({}, PIN), other), replace(PIN, configs=231))
    assert {name: pin.configs for name, pin in parse_pins(document).items()} == {"lane/v11": 210, "lane/v14": 231}


def test_entries_of_another_shape_are_left_out() -> None:
    assert parse_pins({"format": FORMAT, "pins": [{"release": "x"}]}) == {}
    assert parse_pins({"format": "another", "pins": [PIN]}) == {}


PATH = set_path(FLASHINFER, "103a", "9ac7b387" + "0" * 56, None)


def test_a_set_goes_where_none_was() -> None:
    files = FakeCacheFiles()
    placed = seed_set(files, CACHE, PATH, content(210), "20261129T195003Z")
    assert (placed.path, placed.backup, placed.changed) == (CACHE / PATH, None, True)
    assert files.files == {CACHE / PATH: content(210)}
    assert placed.content.configs == 210


def test_what_was_there_is_kept_beside_it() -> None:
    files = FakeCacheFiles()
    files.add(PATH, content(189))
    placed = seed_set(files, CACHE, PATH, content(210), "20261129T195003Z")
    assert placed.backup == (CACHE / PATH).with_name("autotune_configs.json.aside-20261129T195003Z")
    assert files.files == {CACHE / PATH: content(210), placed.backup: content(189)}


def test_the_right_bytes_are_left_alone() -> None:
    files = FakeCacheFiles()
    files.add(PATH, content(210))
    placed = seed_set(files, CACHE, PATH, content(210), "20261129T195003Z")
    assert not placed.changed
    assert files.files == {CACHE / PATH: content(210)}


def test_what_is_no_set_is_refused_before_anything_changes() -> None:
    files = FakeCacheFiles()
    files.add(PATH, content(189))
    with pytest.raises(InvalidSetError):
        seed_set(files, CACHE, PATH, b"[]", "20261129T195003Z")
    assert files.files == {CACHE / PATH: content(189)}


def test_a_file_of_another_user_is_left_alone() -> None:
    files = FakeCacheFiles()
    files.denied.add(files.add(PATH, content(189)))
    with pytest.raises(CacheDeniedError):
        seed_set(files, CACHE, PATH, content(210), "20261129T195003Z")
    assert files.files == {CACHE / PATH: content(189)}


NAME = "9ac7b387" + "0" * 56
WANTED = ExpectedSet("9ac7b387", 210, "measured", (4440.0, 4440.0))
SET = TuningSet("0.6.18", "103a", NAME, "autotune_configs.json", 1.0, parse_set(content(210)))
PIN_VERIFY = Pin("l/v14", "0.6.18", "103a", NAME, SET.file, 210, parse_set(content(210)).sha256, 1.0)


def test_one_of_two_sets_of_an_identity() -> None:
    """The recipe names its set by sha256; a pin is the user's own decision and goes before it."""
    ours = replace(WANTED, sha256=PIN_VERIFY.sha256)
    assert verify_set(ours, None, (SET,), "0.30.0").state == "ready"
    other = replace(WANTED, sha256="0f" * 32)
    found = verify_set(other, None, (SET,), "0.30.0")
    digest = PIN_VERIFY.sha256[:12]
    said = f"another set of this identity: the recipe names sha256 0f0f0f0f0f0f, found {digest}"
    assert (found.state, found.remarks) == ("differs", (said,))
    assert verify_set(other, PIN_VERIFY, (SET,), "0.30.0").state == "ready"


def test_the_expected_set_is_ready() -> None:
    assert verify_set(WANTED, None, (SET,), "0.30.0") == CacheVerdict("ready", (), SET)
    assert verify_set(WANTED, PIN_VERIFY, (SET,), "0.30.0") == CacheVerdict("ready", (), SET)


def test_a_set_that_grew_is_ready_and_says_so() -> None:
    grown = replace(SET, content=parse_set(content(231)))
    found = verify_set(WANTED, None, (grown,), "0.30.0")
    assert found == CacheVerdict("ready", ("231 configurations, 210 when it was recorded: the file has grown",), grown)


def test_a_pinned_set_may_not_change() -> None:
    grown = replace(SET, content=parse_set(content(231)))
    found = verify_set(WANTED, PIN_VERIFY, (grown,), "0.30.0")
    assert found.state == "differs"
    assert found.remarks[0].endswith("210 configurations then, 231 now")
    assert found.remarks[0].startswith(f"not the pinned file: pinned sha256 {PIN_VERIFY.sha256[:12]}, found ")


def test_a_smaller_set_is_tuned_on() -> None:
    small = replace(SET, content=parse_set(content(189)))
    remark = "189 configurations, the recipe expects 210: the boot will tune the rest"
    assert verify_set(WANTED, None, (small,), "0.30.0") == CacheVerdict("differs", (remark,), small)


def test_a_missing_set_says_its_price() -> None:
    found = verify_set(WANTED, None, (), "0.30.0")
    assert found == CacheVerdict("missing", ("set 9ac7b387 is missing: the boot will tune, about 74 minutes",))


def test_a_set_under_the_name_of_another_version_is_not_found_by_this_one() -> None:
    found = verify_set(WANTED, None, (SET,), "0.32.0")
    assert found.state == "missing"
    assert found.remarks[1] == (
        f"flashinfer_autotune_cache/0.6.18/103a/{NAME}/autotune_configs.json exists, "
        "but this engine version loads autotune_configs_dp0_rank0.json: seed it under that name"
    )


def test_a_set_of_another_environment_makes_every_boot_tune() -> None:
    foreign = replace(SET, content=parse_set(content(210, "0.6.17")))
    found = verify_set(WANTED, None, (foreign,), "0.30.0")
    assert found.state == "differs"
    assert found.remarks[0].endswith("every boot tunes until it is removed")


@pytest.mark.parametrize(
    ("problem", "state"), [("it belongs to another user: sudo sha256sum x", "unknown"), ("not JSON: x", "missing")]
)
def test_what_cannot_be_read(problem: str, state: str) -> None:
    closed = replace(SET, content=None, problem=problem)
    assert verify_set(WANTED, None, (closed,), "0.30.0") == CacheVerdict(state, (problem,), closed)


def test_without_a_record_nobody_knows() -> None:
    found = verify_set(ExpectedSet(), None, (SET,), "0.30.0")
    assert (found.state, found.found) == ("unknown", None)


def test_a_version_that_keeps_its_sets_elsewhere() -> None:
    found = verify_set(WANTED, None, (SET,), "0.33.0")
    assert found.state == "unknown"
    assert "/root/.cache/flashinfer/autotune/v2" in found.remarks[0]
