from pathlib import Path

import pytest

from gb300serve.lint.subject import Fitting, LintSubject, option_given, option_path
from gb300serve.recipe.catalog import Catalog
from gb300serve.recipe.load import RecipeLoader
from tests.lint.samples import KNOWN, OTHER, SGLANG, Changes, changed


def subject(directory: Path, text: str) -> LintSubject:
    path = directory / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    loaded = RecipeLoader(Catalog(())).load_file(Catalog(()).at(path))
    assert loaded.recipe is not None
    return LintSubject(loaded, loaded.recipe)


def test_a_checkpoint_is_known_by_its_repository_its_path_or_the_engines_model(tmp_path: Path) -> None:
    repo = "  repo: deepseek-ai/DeepSeek-V4.1-Flash\n"
    known = [
        subject(tmp_path, KNOWN).checkpoint,
        subject(tmp_path, changed(KNOWN, {repo: ""})).checkpoint,
        subject(tmp_path, changed(OTHER, {"model: /model\n": "model: deepseek-ai/DeepSeek-V4.1-Flash\n"})).checkpoint,
    ]
    assert [found.repo if found else None for found in known] == [
        "deepseek-ai/DeepSeek-V4.1-Flash",
        "deepseek-ai/DeepSeek-V4.1-Flash",
        None,
    ]


def test_another_engine_has_its_tables_and_no_memory_plan(tmp_path: Path) -> None:
    found = subject(tmp_path, SGLANG)
    assert (found.is_vllm, found.fitting) == (False, None)
    assert [(table.engine, table.version) for table in found.tables.tables] == [("sglang", "0.5.20")]


def test_plain_texts_leave_out_templates_and_prose(tmp_path: Path) -> None:
    text = changed(
        OTHER,
        {
            "  ipc: host\n": "  ipc: host\n  log: {driver: local, options: {tag: quince}}\n",
            "    port: 8000\n": "    chat_template: plum\n    port: 8000\n",
            "status: draft\n": "status: draft\nlimits: [pear]\n",
        },
    )
    found = subject(tmp_path, text)
    assert {"quince.", "plum", "pear", "local"}.isdisjoint(text.value for text in found.plain_texts)
    assert found.joined.startswith("\0vllm/vllm-openai\0v0.32.0\0")


def test_paths_and_given_options() -> None:
    assert option_path("a", 1) == ("engine", "options", "a", 1)
    assert option_given({"a": None, "b": 0}, "a", "b")
    assert not option_given({"a": None}, "a", "c")


def fitting(directory: Path, text: str) -> Fitting | None:
    path = directory / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    loaded = RecipeLoader(Catalog(())).load_file(Catalog(()).at(path))
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
    [{"{name: GB300}": "{name: H200}"}, {"    port: 30777\n": "    tensor_parallel_size: 2\n    port: 30777\n"}],
)
def test_where_it_does_not_apply(tmp_path: Path, changes: Changes) -> None:
    assert fitting(tmp_path, changed(KNOWN, changes)) is None


def test_an_unknown_checkpoint(tmp_path: Path) -> None:
    assert fitting(tmp_path, OTHER) is None
