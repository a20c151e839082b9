"""The wheel: built from the tree, unpacked, and run from elsewhere."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LANE = "gb300serve/shipped_recipes/deepseek-v4.1-flash"


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = directory.glob("gb300serve-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory / "unpacked")
    return directory / "unpacked"


def test_recipes_and_tables_are_inside(unpacked: Path) -> None:
    shipped = {path.name: path for path in (unpacked / LANE).iterdir()}
    for path in (ROOT / "recipes" / "deepseek-v4.1-flash").iterdir():
        assert shipped[path.name].read_bytes() == path.read_bytes()
    assert (unpacked / "gb300serve" / "shipped_recipes" / "site.yaml").is_file()
    assert (unpacked / "gb300serve" / "py.typed").is_file()
    source = ROOT / "src" / "gb300serve"
    for pattern in ("probe/*.yaml", "engines/tables/*.json", "engines/models/*.json", "guides/*.md", "guides/*.svg"):
        assert [path.name for path in (unpacked / "gb300serve").glob(pattern)]
        assert len(list(source.glob(pattern))) == len(list((unpacked / "gb300serve").glob(pattern)))


def test_nothing_else_is_inside(unpacked: Path) -> None:
    assert sorted(path.name.split("-")[0] for path in unpacked.iterdir()) == ["gb300serve", "gb300serve"]
    assert list(unpacked.rglob("__pycache__")) == []


def test_it_compiles_from_elsewhere(unpacked: Path, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(unpacked), "HOME": str(tmp_path)}
    code = "import gb300serve, sys; sys.stderr.write(gb300serve.__file__)"
    where = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert Path(where.stderr).is_relative_to(unpacked)
    done = subprocess.run(
        [sys.executable, "-B", "-m", "gb300serve", "compile", "v14"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == (ROOT / "recipes" / "deepseek-v4.1-flash" / "v14.command").read_text()
    helped = subprocess.run(
        [sys.executable, "-B", "-m", "gb300serve", "help", "memory"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert helped.stdout == (ROOT / "src" / "gb300serve" / "guides" / "memory.md").read_text()
