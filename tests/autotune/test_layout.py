import pytest

from gb300serve.autotune.sets import file_name, note_on, set_path


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
    assert note_on("0.32.0") is None
    assert note_on("0.1.dev20904+g179dd0fa9") is None
    note = note_on("0.33.0")
    assert note is not None
    assert "/root/.cache/flashinfer/autotune/v2" in note
