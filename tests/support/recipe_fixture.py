"""Recipes directories of the command line's tests."""

from pathlib import Path

import pytest

from tests.support.recipes import ENGINE, alone, child, write

SITE = "format: gb300serve.site/1\nmodels: /models\ncache: /cache\n"


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    """`bench/v1`, and `bench/v2` which extends it, with a reference site."""
    directory = write(
        tmp_path / "recipes",
        {
            "v1": alone(ENGINE + "    max_model_len: 4096\n    gpu_memory_utilization: 0.90\n"),
            "v2": child("engine: {options: {max_model_len: 8192}}\n"),
        },
    )
    (directory / "site.yaml").write_text(SITE)
    return directory
