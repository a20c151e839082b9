from pathlib import Path

import pytest

from gb300serve.recipe.model import FORMS, Gpus
from tests.support.recipes import container, load, problems, write


@pytest.mark.parametrize(
    ("written", "gpus"),
    [
        ("all", Gpus("all")),
        ("2", Gpus("count", (2,))),
        ("{name: GB300}", Gpus("name", ("GB300",))),
        ("{uuid: GPU-1}", Gpus("uuid", ("GPU-1",))),
        ("{uuid: [GPU-1, GPU-2]}", Gpus("uuid", ("GPU-1", "GPU-2"))),
        ("{index: [0, 1]}", Gpus("index", (0, 1))),
        ("{index: 0}", Gpus("index", (0,))),
        ("null", None),
    ],
)
def test_every_form(tmp_path: Path, written: str, gpus: Gpus | None) -> None:
    loaded = load(write(tmp_path, {"v1": container(f"gpus: {written}")}), "v1")
    assert loaded.problems == ()
    assert loaded.recipe is not None
    assert loaded.recipe.container.gpus == gpus


@pytest.mark.parametrize(
    "written",
    ["0", "-1", "1.0", "true", "some", '"2"', "[0]", "{}", "{name: [a]}", "{name: ''}", "{uuid: []}", "{uuid: [1]}",
     "{index: [a]}", "{index: [-1]}", "{index: []}", "{name: a, uuid: b}", "{device: 0}"],
)  # fmt: skip
def test_any_other_form(tmp_path: Path, written: str) -> None:
    (problem,) = problems(tmp_path, container(f"gpus: {written}"))
    assert (problem.code, problem.path, problem.hint) == ("FMT004", "container.gpus", f"write {FORMS}")
