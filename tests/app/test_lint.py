import os
from pathlib import Path

import pytest

from gb300serve.app.lint import CHUNK, FEWEST, spread
from gb300serve.core.errors import MachineError
from gb300serve.recipe.load import LARGEST
from tests.lint.samples import KNOWN, OTHER, changed
from tests.support.invoke import Answer, run

CHILD = "format: gb300serve/1\nlane: orchard\nrelease: {release}\ntitle: Orchard\nstatus: draft\nextends: v1\n"
LOUD = {"{name: GB300}": "{index: [1]}"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    lane = tmp_path / "orchard"
    lane.mkdir()
    (lane / "v1.yaml").write_text(changed(OTHER, LOUD), encoding="utf-8")
    for release in ("v2", "v3"):
        (lane / f"{release}.yaml").write_text(CHILD.format(release=release), encoding="utf-8")
    return tmp_path


def codes(answer: Answer) -> list[tuple[str, str]]:
    return [(found["code"], Path(found["file"]).name) for found in answer.document["diagnostics"]]


def test_children_do_not_repeat_their_parents_findings(directory: Path) -> None:
    answer = run("lint", directory, "--json")
    assert (answer.code, answer.document["files"], codes(answer)) == (0, 3, [("CON003", "v1.yaml")])


def test_what_is_no_recipe_is_passed_over_in_a_directory_only(directory: Path) -> None:
    other = directory / "compose.yaml"
    other.write_text("services: {web: {image: nginx}}\n", encoding="utf-8")
    (directory / "orchard" / "notes.txt").write_text("format: gb300serve/1\n", encoding="utf-8")
    (directory / "orchard" / "v9.yaml").mkdir()
    assert run("lint", directory, "--json").document["files"] == 3
    answer = run("lint", other, "--json")
    assert (answer.code, codes(answer)) == (3, [("FMT005", "compose.yaml")])


def test_a_directory_without_a_recipe_is_a_finding(directory: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "compose.yaml").write_text("services: {}\n", encoding="utf-8")
    for words in ((other,), (directory / "orchard", other)):
        answer = run("lint", *words, "--json")
        (found,) = [found for found in answer.document["diagnostics"] if found["code"] == "LNT003"]
        assert (answer.code, found["file"], found["severity"]) == (3, str(other), "error")
    assert run("lint", other).out.startswith(f"{other}: error LNT003 no-recipe: no file below {other} is a recipe")


def test_what_cannot_be_read_is_a_finding(directory: Path) -> None:
    (directory / "orchard" / "v4.yaml").symlink_to("gone.yaml")
    os.mkfifo(directory / "orchard" / "v5.yaml")
    (directory / "orchard" / "v6.yaml").write_bytes(b"format: gb300serve/1\n#" + b"x" * LARGEST)
    answer = run("lint", directory, "--json")
    unreadable = {Path(d["file"]).name: d["message"].partition(": ")[2] for d in answer.document["diagnostics"][1:]}
    assert answer.code == 3
    assert unreadable == {
        "v4.yaml": "No such file or directory",
        "v5.yaml": "not a regular file",
        "v6.yaml": "larger than 4 MiB",
    }


@pytest.mark.parametrize("name", ["gone.yaml", "./gone.yaml", "gone/", "./gone.txt", "orchard/v9.yml"])
def test_a_path_that_does_not_exist(directory: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(directory)
    answer = run("lint", name)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.endswith(": No such file or directory\n")


def test_fifty_errors_of_a_file_are_printed(directory: Path) -> None:
    wrong = "".join(f"plum{number}: 1\n" for number in range(53))
    (directory / "orchard" / "v4.yaml").write_text(OTHER.replace("release: v1", "release: v4") + wrong, "utf-8")
    path = directory / "orchard" / "v4.yaml"
    answer = run("lint", path)
    assert answer.out.count(" error FMT001 ") == 50
    assert answer.out.endswith(f"{path}: 3 more errors; `lint --all-errors` prints them\n")
    assert answer.err == "1 file: 53 errors, 0 warnings, 0 notes\n"
    assert run("lint", path, "--all-errors").out.count(" error FMT001 ") == 53
    assert len(run("lint", path, "--json").document["diagnostics"]) == 53


def test_pedantic_findings_are_reported_on_request(directory: Path) -> None:
    own = changed(OTHER, {"{name: GB300}": "all", "release: v1": "release: v4"})
    path = directory / "orchard" / "v4.yaml"
    path.write_text(own, encoding="utf-8")
    assert codes(run("lint", path, "--json")) == []
    assert codes(run("lint", path, "--json", "--pedantic")) == [("CON004", "v4.yaml")]
    path.write_text(f"{own}lint: {{ignore: {{CON004: a Station without a display}}}}\n", encoding="utf-8")
    assert codes(run("lint", path, "--json")) == []


GARDEN = "format: gb300serve/1\nlane: garden\nrelease: v2\ntitle: Garden lane\nstatus: draft\nextends: v1\n"


@pytest.fixture
def garden(tmp_path: Path) -> Path:
    lane = tmp_path / "garden"
    lane.mkdir()
    (lane / "v1.yaml").write_text(KNOWN, encoding="utf-8")
    return lane


@pytest.mark.parametrize(
    ("own", "code", "line", "column", "inherited"),
    [
        ("engine: {options: {max_num_seqs: 32}}", "SPC002", 7, 20, "speculative_config.num_spec"),
        (
            "engine:\n  options:\n    +speculative_config: {num_speculative_tokens: 4}",
            "SPC004",
            9,
            27,
            "batch_size.0",
        ),
        ("engine: {options: {tool_call_parser: null}}", "PRS001", 7, 20, "enable_auto_tool_choice"),
        ("engine: {options: {max_num_batched_tokens: 4096}}", "LEN002", 7, 20, "long_prefill_token_threshold"),
        ("container: {entrypoint: null}\nengine: {version: 0.29.0}", "OPT012", 8, 10, "parser"),
    ],
)
def test_a_finding_is_at_the_key_of_the_child_that_causes_it(
    garden: Path, own: str, code: str, line: int, column: int, inherited: str
) -> None:
    (garden / "v2.yaml").write_text(f"{GARDEN}{own}\n", encoding="utf-8")
    diagnostics = run("lint", garden, "--json").document["diagnostics"]
    found = next(found for found in diagnostics if found["code"] == code)
    assert (found["file"], found["line"], found["column"]) == (str(garden / "v2.yaml"), line, column)
    assert found["release"] == "garden/v2"
    (related,) = found["related"]
    assert related["file"] == str(garden / "v1.yaml")
    assert inherited in related["message"]
    shown = f"    {related['file']}:{related['line']}:{related['column']}: {related['message']}\n"
    assert shown in run("lint", garden / "v2.yaml").out


def test_a_grandchild_does_not_repeat_what_the_child_causes(garden: Path) -> None:
    (garden / "v2.yaml").write_text(f"{GARDEN}engine: {{options: {{max_num_seqs: 32}}}}\n", encoding="utf-8")
    third = GARDEN.replace("v2", "v3").replace("extends: v1", "extends: v2")
    (garden / "v3.yaml").write_text(f"{third}engine: {{options: {{port: 30778}}}}\n", encoding="utf-8")
    found = run("lint", garden, "--json").document["diagnostics"]
    assert [(d["code"], d["release"]) for d in found] == [("SPC002", "garden/v2")]


def test_parents_in_a_circle_are_a_finding(garden: Path) -> None:
    (garden / "v1.yaml").write_text(
        GARDEN.replace("v1", "v0").replace("v2", "v1").replace("v0", "v2"), encoding="utf-8"
    )
    (garden / "v2.yaml").write_text(GARDEN, encoding="utf-8")
    answer = run("lint", garden, "--json")
    found = answer.document["diagnostics"]
    assert answer.code == 3
    assert [(d["code"], Path(d["file"]).name) for d in found] == [("EXT002", "v1.yaml"), ("EXT002", "v2.yaml")]
    assert [Path(d["related"][0]["file"]).name for d in found] == ["v2.yaml", "v1.yaml"]


def test_an_entry_that_another_requires_is_not_the_cause(garden: Path) -> None:
    """Without its version the child would be invalid, so that no rule would run."""
    own = "engine:\n  version: 0.30.0\n  options: {engram_config: {cpu_offload: true}, max_num_seqs: 32}\n"
    (garden / "v1.yaml").write_text(KNOWN.replace("0.1.dev20904+g179dd0fa9", "0.29.0").replace("_v41", "_v4"), "utf-8")
    (garden / "v2.yaml").write_text(f"{GARDEN}{own}", encoding="utf-8")
    found = run("lint", garden / "v2.yaml", "--json").document["diagnostics"]
    assert [(d["line"], d["column"]) for d in found if d["code"] == "SPC002"] == [(9, 49)]


def test_an_ignored_rule_that_only_the_parent_needs(garden: Path) -> None:
    noisy = KNOWN.replace("{name: GB300}", "{index: [1]}") + "lint: {ignore: {CON003: the only Station}}\n"
    (garden / "v1.yaml").write_text(noisy, encoding="utf-8")
    (garden / "v2.yaml").write_text(f"{GARDEN}container: {{gpus: {{name: GB300}}}}\n", encoding="utf-8")
    assert run("lint", garden, "--json").document["diagnostics"] == []


def test_a_recipe_that_is_not_utf8_is_not_passed_over(directory: Path) -> None:
    (directory / "orchard" / "v4.yaml").write_bytes(OTHER.encode() + b"limits: [\xff]\n")
    answer = run("lint", directory, "--json")
    assert (answer.code, ("YAML008", "v4.yaml") in codes(answer)) == (3, True)


def test_an_invalid_file_beats_findings(directory: Path) -> None:
    broken = changed(OTHER, {"max_num_seqs: 32": "max_num_seqs: many", "release: v1": "release: v4"})
    (directory / "orchard" / "v4.yaml").write_text(broken, encoding="utf-8")
    answer = run("lint", directory, "--json", "--fail-on", "warning")
    assert (answer.code, codes(answer)) == (3, [("CON003", "v1.yaml"), ("OPT002", "v4.yaml")])
    assert run("lint", directory / "orchard" / "v1.yaml", "--fail-on", "warning").code == 5


def test_pins_are_read_where_they_lie(directory: Path) -> None:
    (directory / "site.yaml").write_text("format: gb300serve.site/1\nmodels: /m\ncache: /c\n", encoding="utf-8")
    (directory / "orchard" / "v1.command").write_text("docker run -d other\n", encoding="utf-8")
    answer = run("lint", directory, "--json")
    assert (answer.code, codes(answer)) == (5, [("PIN001", "v1.yaml"), ("CON003", "v1.yaml")])


def test_the_line_is_shown_and_underlined(directory: Path) -> None:
    path = directory / "orchard" / "v1.yaml"
    assert run("lint", path).out == (
        f"{path}:17:9: warning CON003 gpu-by-index: a GPU's index differs between machines\n"
        "      gpus: {index: [1]}\n"
        "            ^~~~~~\n"
        "    hint: write {name: GB300}\n"
    )


def test_a_path_that_no_file_can_have(directory: Path) -> None:
    name = "x" * 300
    answer = run("lint", name, "--recipes", directory)
    assert (answer.code, answer.err.splitlines()[0]) == (2, f"gb300serve: release {name} not found")
    assert run("lint", f"{name}.yaml", "--recipes", directory).code == 3
    assert run("show", "v1", "--recipes", name).code == 2


class OddError(MachineError):
    def __init__(self, number: int) -> None:
        super().__init__(f"{number} is odd")


def halved(number: int) -> int:
    if number % 2:
        raise OddError(number)
    return number // 2


def process(_: int) -> int:
    return os.getpid()


def test_few_items_stay_in_this_process() -> None:
    assert set(spread(process, range(FEWEST - 1))) == {os.getpid()}


def test_many_items_come_back_in_their_order() -> None:
    numbers = range(0, 2 * (FEWEST + CHUNK + 1), 2)
    assert list(spread(halved, numbers)) == [number // 2 for number in numbers]


def test_an_error_of_ours_is_raised_here_with_its_words() -> None:
    numbers = [*range(0, 2 * FEWEST, 2), 7]
    with pytest.raises(OddError, match="7 is odd"):
        list(spread(halved, numbers))
