import os
from pathlib import Path

import pytest

from gb300serve.app.lint import CHUNK, FEWEST, spread
from gb300serve.core.errors import MachineError
from tests.lint.samples import OTHER, changed
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


def test_a_directory_without_a_recipe_says_so(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text("services: {}\n", encoding="utf-8")
    answer = run("lint", tmp_path)
    assert (answer.code, answer.out) == (0, "")
    assert answer.err == "0 files: no YAML file there says `format: gb300serve/…`\n"


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
