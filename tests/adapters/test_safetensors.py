from pathlib import Path

import pytest

from gb300serve.adapters.safetensors import CheckpointUnreadableError, read_config, read_tensors
from gb300serve.fit.checkpoint import Tensor
from tests.support.checkpoints import CONFIG, write_checkpoint


def test_one_file_needs_no_index(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, {"model.safetensors": {"a": (2, 3), "b": (10**12,)}})
    assert read_config(tmp_path) == CONFIG
    assert list(read_tensors(tmp_path)) == [Tensor("a", (2, 3), 6), Tensor("b", (10**12,), 10**12)]


def test_files_of_an_index(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, {"2.safetensors": {"b": (1,)}, "1.safetensors": {"a": (1,)}})
    (tmp_path / "stray.safetensors").write_bytes(b"not of this model")
    assert [one.name for one in read_tensors(tmp_path)] == ["a", "b"]


def reason(directory: Path) -> str:
    with pytest.raises(CheckpointUnreadableError) as caught:
        list(read_tensors(directory))
    assert caught.value.exit_code == 2
    return caught.value.message.removeprefix(f"--checkpoint {directory}")


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    assert reason(tmp_path) == ": no *.safetensors in it"
    write_checkpoint(tmp_path, {f"{name}.safetensors": {name: (1,)} for name in "abc"})
    (tmp_path / "b.safetensors").unlink()
    (tmp_path / "c.safetensors").unlink()
    assert reason(tmp_path) == ": b.safetensors and 1 more absent"
    with pytest.raises(CheckpointUnreadableError, match=r"config\.json: No such file"):
        read_config(tmp_path / "absent")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "not a safetensors header"),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00[]", "not a safetensors header"),
        (b'\x08\x00\x00\x00\x00\x00\x00\x00{"a": 1}', "not a safetensors header"),
        (b"\xff" * 16, "a header of 18446744073709551615 bytes"),
    ],
)
def test_files_of_another_kind(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    assert reason(tmp_path) == f"/model.safetensors: {expected}"


@pytest.mark.parametrize(("text", "expected"), [("{", "not JSON"), ("[]", "not a JSON object")])
def test_a_configuration_of_another_kind(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(CheckpointUnreadableError, match=expected):
        read_config(tmp_path)
