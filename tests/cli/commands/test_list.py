from pathlib import Path

from tests.support.invoke import run
from tests.support.recipes import alone, write

FIGURE = "evidence: [{figure: speed, value: 91.0, unit: tok/s, workload: prose, method: m}]\n"


def test_text(recipes: Path) -> None:
    write(recipes, {"v3": alone(release="v3").replace("A bench", "日本").replace("draft", "deprecated")})
    write(recipes, {"v1": alone() + FIGURE})
    (recipes / "bench" / "v2.command").write_text("docker run\n")
    answer = run("list", "--recipes", recipes)
    own = [line for line in answer.out.splitlines() if line.startswith(("LANE", "bench"))]
    assert [line.split() for line in own] == [
        ["LANE", "RELEASE", "STATUS", "PINNED", "TITLE", "FIGURE"],
        ["bench", "v1", "draft", "no", "A", "bench", "speed:", "91.0", "tok/s", "(prose)"],
        ["bench", "v2", "draft", "yes", "A", "bench", "-"],
    ]
    assert "日本" in run("list", "--recipes", recipes, "--all").out


def test_the_current_and_the_documented_release_are_marked_and_shown(recipes: Path) -> None:
    statuses = {"v3": "rejected", "v4": "withdrawn", "v5": "withdrawn"}
    write(recipes, {name: alone(release=name).replace("draft", status) for name, status in statuses.items()})
    (recipes / "bench" / "lane.yaml").write_text("format: gb300serve.lane/1\ncurrent: v1\ndocumented: v4\n")
    rows = [line.split() for line in run("list", "--recipes", recipes).out.splitlines() if line.startswith("bench")]
    assert [row[1:4] for row in rows] == [
        ["v1", "draft,", "current"],
        ["v2", "draft", "no"],
        ["v4", "withdrawn,", "documented"],
    ]


def test_json(recipes: Path) -> None:
    write(recipes, {"v1": alone() + FIGURE})
    answer = run("list", "--recipes", recipes, "--json")
    assert list(answer.document) == ["schema", "releases"]
    assert answer.document["schema"] == "gb300serve.list/1"
    own = [row for row in answer.document["releases"] if row["lane"] == "bench"]
    assert own == [
        {
            "lane": "bench", "release": "v1", "title": "A bench", "status": "draft", "extends": None, "pinned": False,
            "headline": "speed: 91.0 tok/s (prose)", "file": str(recipes / "bench" / "v1.yaml"),
            "current": False, "documented": False,
        },
        {
            "lane": "bench", "release": "v2", "title": "A bench", "status": "draft", "extends": "v1", "pinned": False,
            "headline": None, "file": str(recipes / "bench" / "v2.yaml"),
            "current": False, "documented": False,
        },
    ]  # fmt: skip


def test_a_file_that_is_no_recipe_is_named(recipes: Path) -> None:
    write(recipes, {"v3": "title: x\n"})
    answer = run("list", "--recipes", recipes)
    assert answer.code == 0
    file = recipes / "bench" / "v3.yaml"
    said = "line 1: the file does not state its format"
    assert answer.err == f"{file} is not a valid recipe and is skipped: {said}\n"


def test_a_recipe_in_the_directory_of_another_lane_is_named(recipes: Path) -> None:
    write(recipes, {"v3": alone(release="v4")})
    answer = run("list", "--recipes", recipes)
    said = "line 3: the path of the file is bench/v3.yaml, but release is v4"
    assert answer.err == f"{recipes / 'bench' / 'v3.yaml'} is not a valid recipe and is skipped: {said}\n"


def test_a_broken_site_does_not_matter(recipes: Path) -> None:
    answer = run("list", "--recipes", recipes, variables={"GB300SERVE_SITE": "/nonexistent/site.yaml"})
    assert answer.code == 0
