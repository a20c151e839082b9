from pathlib import Path

import pytest

from gb300serve.lint.subject import Fitting, LintSubject
from gb300serve.recipe.catalog import Catalog
from gb300serve.recipe.load import Loader
from tests.lint.samples import KNOWN, OTHER, Changes, changed


def fitting(directory: Path, text: str) -> Fitting | None:
    path = directory / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    loaded = Loader(Catalog(())).load_file(Catalog(()).at(path))
    assert loaded.recipe is not None
    return LintSubject(loaded, loaded.recipe).fitting


@pytest.mark.parametrize(
    ("changes", "verdict", "failed"),
    [
        ({}, "fits", None),
        ({"cpu_offload_gb: 70": "cpu_offload_gb: 55"}, "refused", "offload 55"),
        ({"cpu_offload_gb: 70": "cpu_offload_gb: 40"}, "refused", "v4"),
        (
            {"cpu_offload_gb: 70": "cpu_offload_gb: 60", "utilization: 0.97": "utilization: 0.93"},
            "refused",
            "1M at utilisation 0.94",
        ),
        ({"cpu_offload_gb: 70": "cpu_offload_gb: 50"}, "refused", None),
    ],
)
def test_the_nearest_boot_that_failed(tmp_path: Path, changes: Changes, verdict: str, failed: str | None) -> None:
    found = fitting(tmp_path, changed(KNOWN, changes))
    assert found is not None
    assert (found.plan.verdict, found.failed.name if found.failed else None) == (verdict, failed)


@pytest.mark.parametrize(
    "changes",
    [
        {"{name: GB300}": "{name: H200}"},
        {"    port: 30777\n": "    tensor_parallel_size: 2\n    port: 30777\n"},
    ],
)
def test_where_it_does_not_apply(tmp_path: Path, changes: Changes) -> None:
    assert fitting(tmp_path, changed(KNOWN, changes)) is None


def test_an_unknown_checkpoint(tmp_path: Path) -> None:
    assert fitting(tmp_path, OTHER) is None
