from typing import Any

import pytest

from gb300serve.autotune.identity import Change, changes, effect_of, identity_change
from gb300serve.core.values import WrittenFloat
from gb300serve.recipe.model import PLAN_SECTIONS, Recipe

DAY_ZERO = "0.1.dev20904+g179dd0fa9"


def touch(path: str, version: str | None = DAY_ZERO, before: Any = 1, after: Any = 2) -> str:
    return effect_of(Change(path, before, after), version).identity


@pytest.mark.parametrize(
    ("option", "day_zero", "release"),
    [
        ("max_num_seqs", "changes", "changes"),
        ("max_model_len", "changes", "changes"),
        ("kv_cache_dtype", "changes", "changes"),
        ("cudagraph_capture_sizes", "changes", "changes"),
        ("speculative_config.num_speculative_tokens", "changes", "changes"),
        ("speculative_config.num_speculative_tokens_per_batch_size", "unknown", "unknown"),
        ("gpu_memory_utilization", "keeps", "keeps"),
        ("long_prefill_token_threshold", "keeps", "keeps"),
        ("cpu_offload_gb", "unknown", "changes"),
        ("async_scheduling", "unknown", "changes"),
        ("max_num_batched_tokens", "unknown", "changes"),
        ("cpu_offload_params", "unknown", "changes"),
        ("engram_config.cpu_offload", "unknown", "changes"),
        ("model", "unknown", "changes"),
        ("served_model_name", "keeps", "keeps"),
        ("port", "keeps", "keeps"),
        ("reasoning_parser", "keeps", "keeps"),
        ("some_new_option", "unknown", "unknown"),
    ],
)
def test_options(option: str, day_zero: str, release: str) -> None:
    path = f"engine.options.{option}"
    assert (touch(path), touch(path, "0.31.0")) == (day_zero, release)
    assert touch(path, None) == day_zero


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("image.digest", "changes"),
        ("image.repository", "changes"),
        ("image.tag", "keeps"),
        ("engine.version", "changes"),
        ("engine.name", "changes"),
        ("engine.extra_args", "unknown"),
        ("engine.launcher", "unknown"),
        ("model.path", "keeps"),
        ("model.repo", "unknown"),
        ("models", "keeps"),
        ("nodes", "unknown"),
        ("container.name", "keeps"),
        ("container.env.PIN_MODE", "keeps"),
    ],
)
def test_everything_else_that_is_launched(path: str, expected: str) -> None:
    assert touch(path) == expected


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize("section", sorted(PLAN_SECTIONS))
def test_every_section_of_the_plan_has_an_effect(section: str, engine: str) -> None:
    model = Recipe.model_fields[section].annotation
    for path in (section, *(f"{section}.{name}" for name in getattr(model, "model_fields", {}))):
        assert effect_of(Change(path, None, "x"), "0.33.0", engine).launch


def test_variables_of_the_engine_count_where_its_source_was_not_read() -> None:
    path = "container.env.VLLM_USE_V2_MODEL_RUNNER"
    assert [touch(path, version) for version in (DAY_ZERO, "0.29.0", "0.30.0", "0.33.0")] == [
        "unknown",
        "unknown",
        "keeps",
        "keeps",
    ]


def test_another_cache_directory_may_hold_another_cache() -> None:
    cache = {"source": "/a", "target": "/root/.cache/vllm"}
    patch = {"source": "/p.py", "target": "/usr/lib/p.py"}
    assert touch("container.mounts", before=[cache], after=[cache, patch]) == "keeps"
    assert touch("container.mounts", before=[cache], after=[{**cache, "source": "/b"}]) == "unknown"


def test_an_effect_knows_its_field() -> None:
    found = effect_of(Change("engine.options.max_num_seqs", 16, 24), DAY_ZERO)
    assert (found.field, found.launch) == ("engine.options.max_num_seqs", "concurrent requests")


@pytest.mark.parametrize(
    ("path", "effect"),
    [
        ("engine.options.port", ("listen port", "keeps", "no kernel is tuned for it")),
        ("engine.options.seed", ("another engine argument", "unknown", "the tuning of sglang is not recorded")),
        ("image.digest", ("another image", "unknown", "the tuning of sglang is not recorded")),
    ],
)
def test_of_another_engine_nothing_is_said_that_was_read_in_vllm(path: str, effect: tuple[str, str, str]) -> None:
    found = effect_of(Change(path, 1, 2), "0.5.20", "sglang")
    assert (found.launch, found.identity, found.reason) == effect


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [Change("a", 1, 2)]),
        ({"a": 1}, {}, [Change("a", 1, None)]),
        ({}, {"a": 1}, [Change("a", None, 1)]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, [Change("a.c", 2, 3)]),
        ({"a": [1, 2]}, {"a": [1, 3]}, [Change("a", [1, 2], [1, 3])]),
        ({}, {"a": {"b": {"c": 1}}}, [Change("a.b.c", None, 1)]),
        ({"a": {"b": 1}}, {}, [Change("a.b", 1, None)]),
        ({"a": {"b": 1}}, {"a": 1}, [Change("a", {"b": 1}, 1)]),
        ({"a": {}}, {}, [Change("a", {}, None)]),
        ({}, {"a": {}}, [Change("a", None, {})]),
        ({"a": {"b.c": 1}}, {"a": {"b.c": 2}}, [Change('a.["b.c"]', 1, 2)]),
        ({"a": WrittenFloat("0.9")}, {"a": WrittenFloat("0.90")}, [Change("a", 0.9, 0.9)]),
        ({"a": 1}, {"a": True}, [Change("a", 1, True)]),
        ({"a": 1}, {"a": "1"}, [Change("a", 1, "1")]),
        ({"format": "x/1", "extends": "v1"}, {"format": "x/2"}, []),
        ({"b": 1, "a": 1}, {"c": 2, "a": 2, "b": 2}, [Change("b", 1, 2), Change("a", 1, 2), Change("c", None, 2)]),
    ],
)
def test_fields_that_differ(before: dict[str, Any], after: dict[str, Any], found: list[Change]) -> None:
    assert list(changes(before, after)) == found


def test_what_the_plan_is_compiled_from() -> None:
    sections = ("image", "model", "models", "container", "engine")
    assert all(Change(f"{section}.x", 1, 2).in_plan for section in sections)
    record = ("release", "title", "status", "boot", "memory", "evidence", "limits", "probes", "lint", "lane")
    assert not any(Change(f"{section}.x", 1, 2).in_plan for section in record)


def test_what_gives_another_identity() -> None:
    options: dict[str, Any] = {"max_num_seqs": 12, "port": 1}
    before: dict[str, Any] = {"engine": {"name": "vllm", "version": "0.30.0", "options": options}}

    def after(**changed: object) -> dict[str, Any]:
        return {"title": "x", "engine": {**before["engine"], "options": {**options, **changed}}}

    changed = identity_change(before, after(port=2, max_num_seqs=24))
    assert changed is not None
    assert changed.field == "engine.options.max_num_seqs"
    assert identity_change(before, after(port=2, gpu_memory_utilization=0.9)) is None
    assert identity_change(before, before) is None
