from typing import Any

import pytest

from gb300serve.compare.changes import Change, changes
from gb300serve.core.values import WrittenFloat


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
