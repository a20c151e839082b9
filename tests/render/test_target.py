from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gb300serve.plan.model import ContainerPlan, Mount
from gb300serve.render.target import (
    OMITTED,
    Gap,
    TargetService,
    bind_mounts,
    common_gaps,
    file_header,
    substitute_secrets,
    yaml_text,
)
from tests.render.test_docker_run import plan


@pytest.mark.parametrize(("seconds", "patience"), [(454.5, 5855), (720, 6120), (None, 7200)])
def test_patience_is_a_boot_and_one_tuning_of_the_kernels(seconds: float | None, patience: int) -> None:
    assert TargetService(8000, seconds).patience == patience


def test_declared_secrets_alone_are_written() -> None:
    written = substitute_secrets(
        "a$${secret:K}b${secret:NONE}$", "<{}>".format, lambda text: text.replace("$", "S"), {"K"}
    )
    assert written == "aS<K>bS{secret:NONE}S"


def test_the_header_of_a_file_is_a_comment() -> None:
    gaps = (Gap(OMITTED, ("container", "mounts"), "a\nb: \x1b[31mc", "d\r\ne"),)
    text = file_header(plan(), "a file", ("Start it.",), gaps)
    assert text.splitlines()[1:] == [
        "# Start it.",
        "#",
        "# Differences from `docker run`:",
        "# warning TGT001 container.mounts: a b: c (d e)",
    ]
    assert file_header(plan(), "a file", (), ()).startswith("# bench/v1 as a file, compiled by gb300serve from plan ")


def test_gaps_of_every_target() -> None:
    container = ContainerPlan(
        "", mounts=(Mount("/a", "/b", sha256="0" * 64), Mount("name", "/c", is_volume=True), Mount("/d", "/e"))
    )
    assert [gap.message for gap in common_gaps(plan(container=container))] == [
        "the sha256 of /a is not checked",
    ]
    assert [mount.source for mount in bind_mounts(container)] == ["/a", "/d"]


texts = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(
    (
        "",
        "no",
        "1e5",
        "012",
        "2026-01-01",
        "~",
        "a: b",
        "a #b",
        "- a",
        "{a}",
        "x" * 300,
        "a " * 100,
        "%",
        "@a",
        "a\nb\n",
        " a",
    )
)
values = st.recursive(
    texts | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(values)
@settings(derandomize=True, max_examples=150, deadline=None)
def test_reads_as_it_was(value: Any) -> None:
    assert yaml.safe_load(yaml_text(value)) == value


def test_ambiguous_text_is_quoted() -> None:
    assert yaml_text(
        {"a": ["no", "1", "0.90", "1:30", "on", "null", "plain", "a b", "ü", "a\nb"], "b": {"c": 1, "d": True}}
    ) == (
        'a:\n  - "no"\n  - "1"\n  - "0.90"\n  - "1:30"\n  - "on"\n  - "null"\n  - plain\n  - a b\n  - ü\n  - "a\\nb"\n'
        "b:\n  c: 1\n  d: true\n"
    )


def test_a_value_in_two_places_is_written_twice() -> None:
    shared = {"name": "a"}
    assert yaml_text({"x": shared, "z": shared}) == "x:\n  name: a\nz:\n  name: a\n"
