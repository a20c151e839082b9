from pathlib import Path

from gb300serve.host.model_files import (
    Model,
    ModelFiles,
    header_size,
    indexed,
    is_config,
    matching_set,
    revision,
    whole_size,
)
from tests.support.checkpoints import safetensors

COMMIT = "df42c109f1defefcbfcedbe7d905718a12266e40"


def test_the_files_of_an_index() -> None:
    assert indexed(
        '{"metadata": {}, "weight_map": {"a": "2.safetensors", "b": "1.safetensors", "c": "2.safetensors"}}'
    ) == (
        "1.safetensors",
        "2.safetensors",
    )
    assert [indexed(text) for text in ("{", "[]", "{}", '{"weight_map": 1}')] == [None] * 4


def test_a_config() -> None:
    assert [is_config(text) for text in ("{}", "[]", "", "version https://git-lfs")] == [True, False, False, False]


def test_the_revision_that_a_directory_claims() -> None:
    assert revision(f"/models/DeepSeek-V4.1-Flash-{COMMIT}", None) == COMMIT
    assert revision(f"/hub/models--a--b/snapshots/{COMMIT}", None) == COMMIT
    assert revision("/models/b", f"{COMMIT}\nabc\n1.5\n") == COMMIT
    assert revision(f"/models/b-{'0' * 40}", f"{COMMIT}\n") == COMMIT
    assert revision("/models/b", "etag\n") is None
    assert revision("/models/b", None) is None


def test_complete() -> None:
    whole = ModelFiles(Model("/m"), shards=2, bytes=1)
    assert whole.complete
    assert not ModelFiles(Model("/m"), shards=2, absent=("a",)).complete
    assert not ModelFiles(Model("/m"), shards=2, cut=("a",)).complete
    assert not ModelFiles(Model("/m"), shards=0).complete
    assert not ModelFiles(Model("/m"), shards=2, config=False).complete
    assert not ModelFiles(Model("/m"), exists=False).complete


def test_a_file_is_as_long_as_its_header_and_its_tensors(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    safetensors(path, {"a": (3, 4), "b": (5,)})
    begin = path.read_bytes()
    assert header_size(begin) == len(begin) - 8
    assert whole_size(begin) == len(begin) + 17
    assert whole_size(begin[:-1]) is None


def test_what_is_no_such_file() -> None:
    assert header_size(b"version https://git-lfs.github.com/spec/v1\n") is None
    assert header_size(b"") is None
    assert whole_size(b"") is None
    assert whole_size((3).to_bytes(8, "little") + b"abc") is None


def test_no_tensors() -> None:
    assert whole_size((2).to_bytes(8, "little") + b"{}") == 10


def test_by_the_beginning_of_the_name() -> None:
    paths = ("/c/0.6.18/103a/9ac7b3880", "/c/0.6.18/103a/9ac7b387ff", "/c/9ac7b387/x/y")
    assert matching_set("9ac7b387", paths) == "/c/0.6.18/103a/9ac7b387ff"
    assert matching_set("08c89d94", paths) is None
