import pytest

from gb300serve.autotune.pins import put
from gb300serve.autotune.sets import CacheDeniedError, NotASetError, set_path
from tests.support.fake_cache import CACHE, FLASHINFER, FakeCacheFiles, content

PATH = set_path(FLASHINFER, "103a", "9ac7b387" + "0" * 56, None)


def test_a_set_goes_where_none_was() -> None:
    files = FakeCacheFiles()
    placed = put(files, CACHE, PATH, content(210), "20261129T195003Z")
    assert (placed.path, placed.aside, placed.changed) == (CACHE / PATH, None, True)
    assert files.files == {CACHE / PATH: content(210)}
    assert placed.content.configs == 210


def test_what_was_there_is_kept_beside_it() -> None:
    files = FakeCacheFiles()
    files.add(PATH, content(189))
    placed = put(files, CACHE, PATH, content(210), "20261129T195003Z")
    assert placed.aside == (CACHE / PATH).with_name("autotune_configs.json.aside-20261129T195003Z")
    assert files.files == {CACHE / PATH: content(210), placed.aside: content(189)}


def test_the_right_bytes_are_left_alone() -> None:
    files = FakeCacheFiles()
    files.add(PATH, content(210))
    placed = put(files, CACHE, PATH, content(210), "20261129T195003Z")
    assert not placed.changed
    assert files.files == {CACHE / PATH: content(210)}


def test_what_is_no_set_is_refused_before_anything_changes() -> None:
    files = FakeCacheFiles()
    files.add(PATH, content(189))
    with pytest.raises(NotASetError):
        put(files, CACHE, PATH, b"[]", "20261129T195003Z")
    assert files.files == {CACHE / PATH: content(189)}


def test_a_file_of_another_user_is_left_alone() -> None:
    files = FakeCacheFiles()
    files.denied.add(files.add(PATH, content(189)))
    with pytest.raises(CacheDeniedError):
        put(files, CACHE, PATH, content(210), "20261129T195003Z")
    assert files.files == {CACHE / PATH: content(189)}
