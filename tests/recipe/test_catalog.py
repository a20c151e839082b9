from pathlib import Path

import pytest

from gb300serve.core.errors import CommandLineError, NoSuchFileError
from gb300serve.recipe.catalog import Catalog, LaneInvalidError, is_path
from tests.support.recipes import alone, write


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    """Two directories: `first` has bench/v1; `second` has bench/v1 (another text), bench/v2 and other/v2."""
    first = write(tmp_path / "first", {"v1": alone()})
    second = write(tmp_path / "second", {"v1": alone() + "# another\n", "v2": alone(release="v2")})
    write(second, {"v2": alone(release="v2"), "v3": alone(release="v3")}, lane="other")
    return Catalog((first, second))


def found(catalog: Catalog, ref: str, default_lane: str | None = None) -> str:
    path = catalog.find(ref, default_lane).path
    return str(path.relative_to(catalog.directories[0].parent))


def test_a_lane_means_its_current_release(catalog: Catalog) -> None:
    lane = catalog.directories[1] / "bench" / "lane.yaml"
    lane.write_text("format: gb300serve.lane/1\ncurrent: v2\n")
    assert found(catalog, "bench") == "second/bench/v2.yaml"
    assert "bench/lane" not in set(catalog.refs())
    with pytest.raises(CommandLineError):
        catalog.find("bench/lane")
    with pytest.raises(CommandLineError):
        catalog.find("other")
    # A release of that name wins.
    write(catalog.directories[0], {"bench": alone(release="bench")}, lane="third")
    assert found(catalog, "bench") == "first/third/bench.yaml"


@pytest.mark.parametrize("text", ["format: gb300serve.lane/1\nserves: v1\n", "current: v1\n", "- v1\n", "a: [\n"])
def test_a_lane_file_that_is_not_valid(catalog: Catalog, text: str) -> None:
    (catalog.directories[0] / "bench" / "lane.yaml").write_text(text)
    with pytest.raises(LaneInvalidError, match="not a valid lane file"):
        catalog.lane_file("bench")


@pytest.mark.parametrize(
    ("ref", "path"),
    [
        ("v1", "first/bench/v1.yaml"),
        ("bench/v1", "first/bench/v1.yaml"),
        ("bench/v2", "second/bench/v2.yaml"),
        ("v3", "second/other/v3.yaml"),
    ],
)
def test_a_release_by_name(catalog: Catalog, ref: str, path: str) -> None:
    assert found(catalog, ref) == path


def test_a_bare_release_means_the_default_lane(catalog: Catalog) -> None:
    assert found(catalog, "v2", "other") == "second/other/v2.yaml"
    assert found(catalog, "v2", "bench") == "second/bench/v2.yaml"
    assert found(catalog, "v3", "bench") == "second/other/v3.yaml"
    assert found(catalog, "bench/v2", "other") == "second/bench/v2.yaml"


@pytest.mark.parametrize("default_lane", [None, "absent"])
def test_several_lanes(catalog: Catalog, default_lane: str | None) -> None:
    with pytest.raises(CommandLineError) as error:
        catalog.find("v2", default_lane)
    assert error.value.exit_code == 2
    assert error.value.message == "several lanes have v2: bench/v2, other/v2"
    assert error.value.hint == "write the lane, or set default_lane in the site file"


@pytest.mark.parametrize(
    ("ref", "hint"),
    [
        ("bench/v9", "did you mean bench/v2?"),
        ("bensh/v1", "did you mean bench/v1?"),
        ("nothing", None),
        ("", None),
        ("bench/", "did you mean bench/v2?"),
        ("bench/v1/x", "did you mean bench/v1?"),
        ("bench/v1\0", "did you mean bench/v1?"),
    ],
)
def test_an_unknown_release(catalog: Catalog, ref: str, hint: str | None) -> None:
    with pytest.raises(CommandLineError) as error:
        catalog.find(ref)
    assert error.value.message == f"release {ref or repr(ref)} not found"
    looked = ", ".join(map(str, catalog.directories))
    assert error.value.hint == (hint or f"searched {looked}")


def test_a_later_release_that_differs_is_shadowed(catalog: Catalog) -> None:
    assert [path.parent.parent.name for path in catalog.find("bench/v1").shadows] == ["second"]
    (catalog.directories[1] / "bench" / "v1.yaml").write_text(alone())
    assert catalog.find("bench/v1").shadows == ()


def test_the_other_suffix(tmp_path: Path) -> None:
    write(tmp_path, {"v1": alone()})
    (tmp_path / "bench" / "v1.yaml").rename(tmp_path / "bench" / "v1.yml")
    (tmp_path / "bench" / "directory.yaml").mkdir()
    (tmp_path / "bench" / "v1.command").write_text("docker run")
    catalog = Catalog((tmp_path,))
    assert catalog.find("v1").path.suffix == ".yml"
    assert list(catalog.refs()) == ["bench/v1"]


@pytest.mark.parametrize(
    ("ref", "path"),
    [
        ("v1.yaml", True), ("a/v1.yml", True), ("./v1", True), ("../v1", True), ("/v1", True), ("~/v1", True),
        ("v1", False), ("lane/v1", False), ("v1.yaml.bak", False), (".v1", False),
    ],
)  # fmt: skip
def test_a_file_by_its_path(ref: str, path: bool) -> None:
    assert is_path(ref) is path


def test_the_directory_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = write(tmp_path / "recipes", {"v1": alone()})
    file = directory / "bench" / "v1.yaml"
    monkeypatch.chdir(tmp_path)
    assert Catalog(()).at(file).directory is None
    assert Catalog((directory,)).at(file).directory == directory
    assert Catalog((Path("recipes"),)).at(Path("recipes/bench/v1.yaml")).directory == directory
    (directory / "site.yaml").write_text("format: gb300serve.site/1\n")
    assert Catalog(()).at(file).directory == directory


def test_a_user_who_is_not_there() -> None:
    with pytest.raises(NoSuchFileError, match="~nobody-of-that-name/v1: No such file or directory"):
        Catalog(()).find("~nobody-of-that-name/v1")


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    assert Catalog((tmp_path,)).release("x" * 300, "v1") is None
