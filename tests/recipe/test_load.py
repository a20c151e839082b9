from pathlib import Path
from typing import Any

import pytest

from gb300serve.core.errors import CommandLineError
from gb300serve.recipe.catalog import Catalog, RecipeFile
from gb300serve.recipe.load import CACHED, LoadedRecipe, RecipeLoader
from tests.support.recipes import ENGINE, alone, child, load, said, write

PARENT = alone(
    """\
container:
  env: {A: x, B: z}
  cap_add: [IPC_LOCK]
engine:
  name: vllm
  version: 0.33.0
  options:
    model: /model
    max_model_len: 4096
    speculative_config: {method: mtp, num_speculative_tokens: 2}
    gpu_memory_utilization: 0.90
evidence:
  - {figure: speed, value: 90.0, unit: tok/s, workload: prose, method: a clock}
limits: [slow]
"""
)


def found(loaded: LoadedRecipe) -> list[tuple[str, int | None, int | None, str | None, str]]:
    return [(d.code, d.line, d.column, d.path, d.message) for d in loaded.problems]


def test_a_child_over_its_parent(tmp_path: Path) -> None:
    write(tmp_path, {"v1": PARENT, "v2": child("engine: {options: {max_num_seqs: 4, max_model_len: 8192}}\n")})
    loaded = load(tmp_path, "v2")
    assert loaded.problems == ()
    assert loaded.recipe is not None
    assert list(loaded.recipe.engine.options.items()) == [
        ("model", "/model"),
        ("max_model_len", 8192),
        ("speculative_config", {"method": "mtp", "num_speculative_tokens": 2}),
        ("gpu_memory_utilization", 0.9),
        ("max_num_seqs", 4),
    ]
    assert loaded.recipe.container.env == {"A": "x", "B": "z"}
    assert (loaded.recipe.evidence, loaded.recipe.limits) == ([], ["slow"])
    assert (loaded.recipe.release, loaded.parent, loaded.recipe.extends) == ("v2", "v1", None)
    assert "extends" not in loaded.root


def test_a_chain(tmp_path: Path) -> None:
    texts = {"v1": PARENT}
    for index in range(2, 9):
        step = f"engine:\n  options:\n    +speculative_config: {{k{index}: {index}}}\n"
        texts[f"v{index}"] = child(step, f"v{index}", f"v{index - 1}")
    loaded = load(write(tmp_path, texts), "v8")
    assert loaded.recipe is not None
    config = loaded.recipe.engine.options["speculative_config"]
    assert list(config) == ["method", "num_speculative_tokens", *(f"k{index}" for index in range(2, 9))]


def test_a_chain_is_read_once(tmp_path: Path) -> None:
    """It may be longer than Python's stack is deep."""
    count = 1200
    texts = {f"v{index}": child(f"limits: [of {index}]\n", f"v{index}", f"v{index - 1}") for index in range(1, count)}
    loader = RecipeLoader(Catalog((write(tmp_path, {"v0": PARENT, **texts}),)))
    files = [loader.catalog.find(f"bench/v{index}") for index in (count - 1, count - 2)]
    assert [loader.load_file(file).problems for file in files] == [(), ()]
    assert len(loader.ancestors) == CACHED
    files[1].path.write_text("")
    assert loader.load_file(files[0]).problems == ()


def test_the_lane_may_be_spelled_out(tmp_path: Path) -> None:
    write(tmp_path, {"v1": PARENT, "v2": child("", parent="bench/v1")})
    assert load(tmp_path, "v2").problems == ()


@pytest.mark.parametrize(
    ("parent", "code", "message", "hint"),
    [
        ("v9", "EXT001", "extends v9: bench/v9 not found", "the lane has v1, v2"),
        (
            "other/v1",
            "EXT003",
            "extends names another lane: other/v1",
            "a release can extend only releases of its own lane; copy the shared keys",
        ),
        ("v2", "EXT002", "extends forms a cycle: v2 → v2", "remove one `extends`"),
    ],
)
def test_a_parent_that_cannot_be_followed(tmp_path: Path, parent: str, code: str, message: str, hint: str) -> None:
    write(tmp_path, {"v1": PARENT}, lane="other")
    write(tmp_path, {"v1": PARENT, "v2": child("", parent=parent)})
    (problem,) = load(tmp_path, "bench/v2").problems
    assert (problem.code, problem.line, problem.column, problem.path) == (code, 6, 10, "extends")
    assert (problem.message, problem.hint) == (message, hint)


def test_a_lane_that_nobody_has(tmp_path: Path) -> None:
    path = tmp_path / "elsewhere" / "file.yaml"
    path.parent.mkdir()
    path.write_text(child(""))
    (problem,) = RecipeLoader(Catalog(())).load_file(RecipeFile(path, None)).problems
    assert problem.hint == "no recipes directory contains that lane"


def test_a_longer_circle(tmp_path: Path) -> None:
    write(tmp_path, {"v1": child("", "v1", "v3"), "v2": child("", "v2", "v1"), "v3": child("", "v3", "v2")})
    assert [(d.code, d.message) for d in load(tmp_path, "v3").problems] == [
        ("EXT002", "extends forms a cycle: v3 → v2 → v1 → v3")
    ]


def test_errors_of_a_child_without_its_parent_are_reported_too(tmp_path: Path) -> None:
    text = child("imagee: 1\n+limits: [x]\nengine: {options: {a: 1}, version: 0.30}\n", parent="v9")
    write(tmp_path, {"v2": text})
    assert {(code, word) for code, word, _ in said(list(load(tmp_path, "v2").problems), text)} == {
        ("EXT001", "v9"),
        ("FMT001", "imagee"),
        ("FMT002", "0.30"),
    }


def test_errors_of_parent_and_child_at_once(tmp_path: Path) -> None:
    write(tmp_path, {"v1": PARENT.replace("limits: [slow]", "limits: [yes]"), "v2": child("titel: x\n")})
    assert [(d.code, Path(d.file or "").name) for d in load(tmp_path, "v2").problems] == [
        ("YAML005", "v1.yaml"),
        ("FMT001", "v2.yaml"),
    ]


@pytest.mark.parametrize("key", ["format", "lane", "release", "title", "status"])
def test_what_a_child_must_state(tmp_path: Path, key: str) -> None:
    text = "".join(line for line in child("").splitlines(keepends=True) if not line.startswith(f"{key}:"))
    write(tmp_path, {"v1": PARENT, "v2": text})
    (problem,) = load(tmp_path, "bench/v2").problems
    assert (problem.code, problem.message, problem.path) == ("FMT003", f"`{key}` is missing: it is not inherited", key)


@pytest.mark.parametrize(
    ("key", "path"),
    [("format", "format"), ("lane", "lane"), ("release", "release"), ("title", "title"), ("status", "status"),
     ("image", "image"), ("engine", "engine")],
)  # fmt: skip
def test_what_is_required(tmp_path: Path, key: str, path: str) -> None:
    text = "".join(line for line in alone("engine: {name: vllm}\n").splitlines(keepends=True) if key not in line[:7])
    write(tmp_path, {"v1": text})
    assert path in [d.path or "format" for d in load(tmp_path, "bench/v1").problems]
    text = alone("engine: {version: 0.33.0}\n").replace("repository: vllm/vllm-openai, ", "")
    write(tmp_path, {"v1": text})
    assert [d.path for d in load(tmp_path, "bench/v1").problems] == ["image.repository", "engine.name"]


def test_a_parent_of_a_newer_format(tmp_path: Path) -> None:
    write(tmp_path, {"v1": PARENT.replace("gb300serve/1", "gb300serve/3"), "v2": child("")})
    (problem,) = load(tmp_path, "v2").problems
    assert (problem.code, Path(problem.file or "").name) == ("FMT006", "v1.yaml")


def test_the_parent_beside_the_child_comes_first(tmp_path: Path) -> None:
    searched = write(tmp_path / "searched", {"v1": alone(ENGINE + "limits: [searched]\n")})
    beside = write(tmp_path / "beside", {"v1": alone(ENGINE + "limits: [beside]\n"), "v2": child("")})
    loader = RecipeLoader(Catalog((searched,)))
    loaded = loader.load_file(Catalog((beside,)).find("v2"))
    assert loaded.recipe is not None
    assert loaded.recipe.limits == ["beside"]
    (beside / "bench" / "v1.yaml").unlink()
    loaded = RecipeLoader(Catalog((searched,))).load_file(Catalog((beside,)).find("v2"))
    assert loaded.recipe is not None
    assert loaded.recipe.limits == ["searched"]


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        (
            "release: v1",
            "release: v2",
            "the path of the file is bench/v1.yaml, but release is v2",
            "write `release: v1`",
        ),
        ("lane: bench", "lane: desk", "the path of the file is bench/v1.yaml, but lane is desk", "write `lane: bench`"),
    ],
)
def test_names_are_places(tmp_path: Path, old: str, new: str, message: str, hint: str) -> None:
    write(tmp_path, {"v1": alone().replace(old, new)})
    (problem,) = load(tmp_path, "bench/v1").problems
    assert (problem.code, problem.message, problem.hint) == ("FMT007", message, f"{hint}, or move the file")
    assert RecipeLoader(Catalog(())).load_file(RecipeFile(tmp_path / "bench" / "v1.yaml", None)).problems == ()


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"title: \xff\n", "not UTF-8: byte 7 is 0xff"), ("title: x".encode("utf-16"), "not UTF-8: byte 0 is 0xff")],
)
def test_a_file_that_is_not_utf8(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    (problem,) = RecipeLoader(Catalog(())).load_file(RecipeFile(path, None)).problems
    assert (problem.code, problem.message) == ("YAML008", f"cannot read {path}: {message}")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "a.yaml", "No such file or directory"), (tmp_path, "Is a directory")):
        loaded = RecipeLoader(Catalog(())).load_file(RecipeFile(path, None))
        assert found(loaded) == [("YAML008", 1, 1, None, f"cannot read {path}: {reason}")]
        assert loaded.recipe is None


@pytest.mark.parametrize("text", ["just text", "- a\n- b\n", "null"])
def test_a_file_that_is_no_mapping(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"v1": text})
    assert [d.code for d in load(tmp_path, "bench/v1").problems] == ["FMT002"]


def test_an_assignment_marks_the_release(tmp_path: Path) -> None:
    write(tmp_path, {"v1": PARENT})
    assert load(tmp_path, "v1").changed is False
    loaded = load(tmp_path, "v1", "engine.options.max_model_len=1024")
    assert loaded.changed is True
    assert loaded.place(("engine", "options", "max_model_len")).file == "--set engine.options.max_model_len=1024"


def test_an_assignment_to_a_release_whose_parent_is_missing(tmp_path: Path) -> None:
    write(tmp_path, {"v2": child("", parent="v9")})
    loaded = load(tmp_path, "v2", "engine.options.max_model_len=null")
    assert [d.code for d in loaded.problems] == ["EXT001"]
    with pytest.raises(CommandLineError):
        load(write(tmp_path, {"v1": PARENT}), "v1", "engine.options.absent=null")


def test_a_wrong_place_among_other_errors(tmp_path: Path) -> None:
    write(tmp_path, {"v1": alone().replace("lane: bench", "lane: desk").replace("title:", "titel:")})
    assert sorted(d.code for d in load(tmp_path, "bench/v1").problems) == ["FMT001", "FMT003", "FMT007"]


TUNED = "boot: {tuning_cache: {identity: 9ac7b387}, total: {seconds: 9, basis: b}}\n"


def by_port(before: Any, after: Any) -> str | None:
    ports = [root.get("container", {}).get("ports") for root in (before, after)]
    return "container.ports" if ports[0] != ports[1] else None


@pytest.mark.parametrize(
    ("change", "foreign", "identity"),
    [
        ("", None, "9ac7b387"),
        ("limits: [a]\n", None, "9ac7b387"),
        ("container: {ports: ['1:1']}\n", ("9ac7b387", "container.ports"), None),
        ("container: {ports: ['1:1']}\nboot: {tuning_cache: {identity: 17abc02e}}\n", None, "17abc02e"),
        ("container: {ports: ['1:1']}\nboot: {tuning_cache: null}\n", None, None),
    ],
)
def test_a_tuning_set_is_inherited_with_its_identity(
    tmp_path: Path, change: str, foreign: tuple[str, str] | None, identity: str | None
) -> None:
    write(tmp_path, {"v1": alone(TUNED + ENGINE), "v2": child(change), "v3": child("", "v3", "v2")})
    catalog = Catalog((tmp_path,))
    loader = RecipeLoader(catalog, identity_change=by_port)
    for release, left in (("v2", foreign), ("v3", None)):
        loaded = loader.load_file(catalog.find(f"bench/{release}"))
        assert loaded.problems == ()
        assert loaded.foreign_tuning == left
        assert loaded.root["boot"].get("tuning_cache", {}).get("identity") == identity
        assert loaded.root["boot"]["total"]["seconds"] == 9
    changed = loader.load_file(catalog.find("bench/v1"), ("container.ports=['2:2']",))
    assert changed.foreign_tuning == ("9ac7b387", "container.ports")
    assert "tuning_cache" in loader.load_file(catalog.find("bench/v1")).root["boot"]
