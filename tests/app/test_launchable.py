from pathlib import Path

import pytest

from gb300serve.app.launchable import receipts_of, tuning_of
from gb300serve.app.workspace import shipped_recipes
from gb300serve.boot.receipts import ExpectedLine
from gb300serve.recipe.catalog import Catalog
from gb300serve.recipe.load import RecipeLoader
from gb300serve.recipe.model import Recipe
from tests.support.invoke import run
from tests.support.recipes import write
from tests.support.spread import ALL


@pytest.mark.parametrize("words", [("up", "v1", "--on", "sim"), ("doctor", "v1", "--on", "sim")])
def test_one_model_over_several_stations_is_not_launched(words: tuple[str, ...], tmp_path: Path) -> None:
    directory = write(tmp_path / "recipes", {"v1": ALL["own"]})
    state = {"XDG_STATE_HOME": str(tmp_path / "state"), "KEY": "k"}
    answer = run(*words, "--recipes", directory, variables=state)
    assert answer.code == 4
    assert answer.err.splitlines()[-3:] == [
        "gb300serve: bench/v1 runs on 2 Stations at once, but up starts one container on one Station",
        f"  hint: print the command of each Station: gb300serve compile v1 --recipes {directory}",
        f"        or a LeaderWorkerSet: gb300serve compile v1 --recipes {directory} --to kubernetes",
    ]
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("target", ["compose", "quadlet"])
def test_targets_of_one_machine_say_what_they_lack(target: str, tmp_path: Path) -> None:
    directory = write(tmp_path / "recipes", {"v1": ALL["own"]})
    answer = run("compile", "v1", "--to", target, "--recipes", directory)
    what = {"compose": "a compose file", "quadlet": "a Podman unit"}[target]
    said = f"warning TGT001 nodes: {what} describes one of 2 machines: its engine will not find the others"
    assert (answer.code, sum(said in line for line in answer.out.splitlines())) == (0, 1)
    assert "TGT001 nodes" not in run("compile", "v1", "--to", "kubernetes", "--recipes", directory).out


def test_fit_is_about_one_station() -> None:
    words = ("fit", "v14", "--set", "nodes=2", "--set", "engine.options.pipeline_parallel_size=2", "--json")
    found = run(*words).document
    assert (found["verdict"], [one["code"] for one in found["diagnostics"]]) == ("unknown", ["FIT007"])


def shipped(release: str) -> Recipe:
    catalog = Catalog((shipped_recipes(),))
    recipe = RecipeLoader(catalog).load_file(catalog.find(f"deepseek-v4.1-flash/{release}")).recipe
    assert recipe is not None
    return recipe


def test_receipts_of_a_release() -> None:
    assert receipts_of(shipped("v14")) == (
        ExpectedLine("Total CPU offloaded parameters: {value}", 61.17, 0.01, "fail", basis="measured"),
        ExpectedLine("Available KV cache memory: {value} GiB", 4.87, 0.03, basis="measured"),
        ExpectedLine("Loaded {value} configs", 210.0, 0.0, basis="measured"),
    )


@pytest.mark.parametrize(("release", "identity"), [("v11", "08c89d94"), ("v14", "9ac7b387")])
def test_the_tuning_cache_of_a_release_and_what_missing_it_costs(release: str, identity: str) -> None:
    found = tuning_of(shipped(release))
    assert (found.identity, found.configs, found.tuning_seconds) == (identity, 210, (4440, 4800.0))


def test_without_a_record_of_its_own_a_recorded_boot_tells() -> None:
    recipe = shipped("v14")
    bare = recipe.model_copy(update={"boot": recipe.boot.model_copy(update={"tuning_cache": None})})
    found = tuning_of(bare)
    assert (found.identity and found.identity[:8], found.configs, found.basis) == ("9ac7b387", None, "recorded for v14")
