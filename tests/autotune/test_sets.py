import hashlib

from gb300serve.autotune.sets import list_sets, of_identity, set_path
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
    assert of_identity((one, other), "5440f02d") == (other,)


def test_a_set_of_another_version_will_be_ignored() -> None:
    files = FakeCacheFiles()
    files.add(set_path(FLASHINFER, "103a", SLOW, None), content(189, "0.6.17"))
    (one,) = list_sets(files, CACHE)
    assert one.foreign == "its _metadata says FlashInfer 0.6.17, its directory 0.6.18: it is ignored at each boot"


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
    assert (fast.content, slow.content, slow.foreign) == (None, None, None)


def test_an_empty_cache() -> None:
    assert list_sets(FakeCacheFiles(), CACHE) == ()
