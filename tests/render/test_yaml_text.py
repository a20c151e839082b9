from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gb300serve.render.target import yaml_text

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


def test_what_another_reader_would_take_for_something_else_is_quoted() -> None:
    assert yaml_text(
        {"a": ["no", "1", "0.90", "1:30", "on", "null", "plain", "a b", "ü", "a\nb"], "b": {"c": 1, "d": True}}
    ) == (
        'a:\n  - "no"\n  - "1"\n  - "0.90"\n  - "1:30"\n  - "on"\n  - "null"\n  - plain\n  - a b\n  - ü\n  - "a\\nb"\n'
        "b:\n  c: 1\n  d: true\n"
    )


def test_a_value_in_two_places_is_written_twice() -> None:
    shared = {"name": "a"}
    assert yaml_text({"x": shared, "z": shared}) == "x:\n  name: a\nz:\n  name: a\n"
