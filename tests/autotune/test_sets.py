import hashlib
from pathlib import Path

import pytest

from gb300serve.autotune.sets import (
    CacheDeniedError,
    CacheUnusableError,
    InvalidSetError,
    SetContent,
    file_name,
    flashinfer_of,
    is_same_identity,
    list_sets,
    managed_store_note,
    metadata_differences,
    parse_set,
    set_path,
    sets_of_identity,
    short_identity,
    tuning_time,
)
from tests.support.fake_cache import CACHE, FLASHINFER, FakeCacheFiles, content

SLOW, FAST = "17abc02e" + "0" * 56, "5440f02d" + "0" * 56


def test_every_set_with_what_it_holds() -> None:
    files = FakeCacheFiles()
    files.add(set_path(FLASHINFER, "103a", SLOW, "0.30.0"), content(189))
    files.add(set_path(FLASHINFER, "103a", FAST, "0.32.0"), content(210))
    files.add(f"flashinfer_autotune_cache/{FLASHINFER}/103a/{FAST}/autotune_configs.json.aside-1", content(3))
    files.add("torch_compile_cache/x", b"")
    one, other = list_sets(files, CACHE)
    assert one.as_json() == {
        "path": f"flashinfer_autotune_cache/0.6.18/103a/{SLOW}/autotune_configs.json",
        "flashinfer": "0.6.18",
        "arch": "103a",
        "identity": SLOW,
        "file": "autotune_configs.json",
        "configs": 189,
        "sha256": hashlib.sha256(content(189)).hexdigest(),
        "metadata": {"flashinfer_version": "0.6.18"},
        "used_at": 1_796_000_000.0,
        "problem": None,
    }
    assert (other.identity, other.file) == (FAST, "autotune_configs_dp0_rank0.json")
    assert sets_of_identity((one, other), "5440f02d") == (other,)


def test_a_set_of_another_version_will_be_ignored() -> None:
    files = FakeCacheFiles()
    files.add(set_path(FLASHINFER, "103a", SLOW, None), content(189, "0.6.17"))
    (one,) = list_sets(files, CACHE)
    assert one.mismatch == "FlashInfer 0.6.18 ignores the set: its _metadata names FlashInfer 0.6.17"


def test_what_cannot_be_read_says_why() -> None:
    files = FakeCacheFiles()
    denied = files.add(set_path(FLASHINFER, "103a", SLOW, None), content(189))
    files.denied.add(denied)
    files.add(set_path(FLASHINFER, "103a", FAST, None), b"{")
    (fast,) = [one for one in list_sets(files, CACHE) if one.identity == FAST]
    (slow,) = [one for one in list_sets(files, CACHE) if one.identity == SLOW]
    assert slow.problem == f"it belongs to another user: sudo sha256sum {denied}"
    assert fast.problem is not None
    assert fast.problem.startswith("not JSON")
    assert (fast.content, slow.content, slow.mismatch) == (None, None, None)


def test_an_empty_cache() -> None:
    assert list_sets(FakeCacheFiles(), CACHE) == ()


ENVIRONMENT = b'"_metadata": {"flashinfer_version": "0.6.18", "cuda_version": "13.0", "sm": 103}'
SET = b"{" + ENVIRONMENT + b', "moe, 1": ["r", 3], "moe, 2": ["r", 1]}'


def test_kernels_are_counted_and_the_environment_is_not_one() -> None:
    metadata = {"flashinfer_version": "0.6.18", "cuda_version": "13.0", "sm": "103"}
    assert parse_set(SET) == SetContent(2, hashlib.sha256(SET).hexdigest(), metadata)


def test_a_set_without_environment() -> None:
    assert parse_set(b"{}").metadata == {}


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"\xff"])
def test_what_is_no_set(data: bytes) -> None:
    with pytest.raises(InvalidSetError):
        parse_set(data)


def test_environments_are_compared_where_both_speak() -> None:
    one, other = {"cublas": "13.0", "gpu": "GB300"}, {"cublas": "13.1", "cudnn": "9"}
    assert metadata_differences(one, other) == ("cublas: 13.0 and 13.1",)


def test_the_version_of_the_library_has_two_names() -> None:
    assert flashinfer_of({"flashinfer": "0.6.18"}) == flashinfer_of({"flashinfer_version": "0.6.18"}) == "0.6.18"
    assert flashinfer_of({}) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("9ac7b387", "9ac7b387d41c", True),
        ("08c89d94…4796", "08c89d94aa", True),
        ("9ac7b387", "9ac7b388", False),
        ("9ac7", "9ac7b387", False),
    ],
)
def test_identities_are_compared_by_their_beginning(one: str, other: str, *, same: bool) -> None:
    assert is_same_identity(one, other) is same


def test_what_people_write() -> None:
    assert short_identity("9ac7b387d41c") == "9ac7b387"
    assert tuning_time((4440.0, 4440.0)) == "about 74 minutes"
    assert tuning_time((4440.0, 4860.0)) == "74 to 81 minutes"
    assert tuning_time(None) == "16 to 81 minutes on a Station"


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("0.29.0", "autotune_configs.json"),
        ("0.30.0", "autotune_configs.json"),
        ("0.32.0", "autotune_configs_dp0_rank0.json"),
        ("0.32.0+cpu", "autotune_configs_dp0_rank0.json"),
        ("0.1.dev20904+g179dd0fa9", "autotune_configs.json"),
        (None, "autotune_configs.json"),
    ],
)
def test_the_file_is_named_by_the_engine_version(version: str | None, name: str) -> None:
    assert file_name(version) == name


def test_where_a_set_lies() -> None:
    path = set_path("0.6.18", "103a", "9ac7b387", "0.30.0")
    assert str(path) == "flashinfer_autotune_cache/0.6.18/103a/9ac7b387/autotune_configs.json"


def test_a_version_that_keeps_its_sets_elsewhere_says_so() -> None:
    assert managed_store_note("0.32.0") is None
    assert managed_store_note("0.1.dev20904+g179dd0fa9") is None
    note = managed_store_note("0.33.0")
    assert note is not None
    assert "/root/.cache/flashinfer/autotune/v2" in note


def test_a_file_of_another_user_comes_with_the_command_to_repeat() -> None:
    error = CacheDeniedError(Path("/c/x.json"), "read", "sudo gb300serve cache verify v14")
    assert (error.exit_code, error.message) == (6, "/c/x.json cannot be read: it belongs to another user")
    assert error.hint == "run as root: sudo gb300serve cache verify v14"


def test_anything_else_says_its_reason() -> None:
    assert CacheUnusableError(Path("/c"), "No space left on device").message == "/c: No space left on device"
