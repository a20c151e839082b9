from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gb300serve.recipe.pins import PinFileError, pin_path, read_pin, write_pin


def test_a_pin_lies_beside_its_recipe(tmp_path: Path) -> None:
    recipe = tmp_path / "v1.5.yaml"
    assert read_pin(recipe) is None
    assert write_pin(recipe, "docker run ü\n") == tmp_path / "v1.5.command"
    assert read_pin(recipe) == "docker run ü\n"
    assert [path.name for path in tmp_path.iterdir()] == ["v1.5.command"]


def test_bytes_that_are_not_utf8_differ_from_any_command(tmp_path: Path) -> None:
    (tmp_path / "v1.command").write_bytes(b"docker \xff")
    assert read_pin(tmp_path / "v1.yaml") == "docker \ufffd"


def test_a_pin_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    recipe = tmp_path / "v1.yaml"
    pin_path(recipe).mkdir()
    with pytest.raises(PinFileError, match="Is a directory"):
        read_pin(recipe)
    with pytest.raises(PinFileError, match=r"v1\.command"):
        write_pin(recipe, "docker run\n")


def test_concurrent_writers_do_not_collide(tmp_path: Path) -> None:
    recipe = tmp_path / "v1.yaml"
    texts = [f"docker run {number}\n" * 1000 for number in range(8)]
    with ThreadPoolExecutor(len(texts)) as pool:
        list(pool.map(write_pin, [recipe] * 400, texts * 50))
    assert read_pin(recipe) in texts
    assert [path.name for path in tmp_path.iterdir()] == ["v1.command"]
