import pytest

from gb300serve.app.launchable import receipts_of, tuning_of
from gb300serve.app.workspace import shipped_recipes
from gb300serve.boot.receipts import ExpectedLine
from gb300serve.recipe.catalog import Catalog
from gb300serve.recipe.load import Loader
from gb300serve.recipe.model import Recipe


def shipped(release: str) -> Recipe:
    catalog = Catalog((shipped_recipes(),))
    recipe = Loader(catalog).load_file(catalog.find(f"deepseek-v4.1-flash/{release}")).recipe
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
    assert (found.identity, found.configs, found.tuning_seconds) == (identity, 210, 4440.0)


def test_without_a_record_of_its_own_a_recorded_boot_tells() -> None:
    recipe = shipped("v14")
    bare = recipe.model_copy(update={"boot": recipe.boot.model_copy(update={"tuning_cache": None})})
    found = tuning_of(bare)
    assert (found.identity, found.configs, found.basis) == ("9ac7b387", None, "recorded for v14")
