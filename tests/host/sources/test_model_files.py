from gb300serve.host.model_files import Model, ModelFiles, indexed, is_config, revision

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
