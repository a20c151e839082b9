from pathlib import Path

from gb300serve.host.model_files import header_size, whole_size
from tests.support.checkpoints import safetensors


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
