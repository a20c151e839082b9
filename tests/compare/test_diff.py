from gb300serve.compare.diff import Side, difference
from gb300serve.compare.fields import Change

BEFORE = Side({"title": "A", "engine": {"options": {"a": 1}}}, ("docker", "--a", "1"), "d1")


def test_no_difference() -> None:
    found = difference(BEFORE, BEFORE)
    assert not found.any
    assert found.as_json() == {
        "schema": "gb300serve.diff/1",
        "changes": [],
        "record": [],
        "command": {"added": [], "removed": []},
        "costs": {
            "restart": False, "autotune": "same", "kv_cache_gib": [None, None], "boot_seconds": [None, None],
        },
    }  # fmt: skip


def test_changes_record_and_words() -> None:
    after = Side({"title": "B", "engine": {"options": {"a": 2}}}, ("docker", "--a", "2"), "d2")
    document = difference(BEFORE, after).as_json()
    assert list(document) == ["schema", "changes", "record", "command", "costs"]
    assert document["changes"] == [
        {"path": "engine.options.a", "before": 1, "after": 2, "effect": "other engine arguments"}
    ]
    assert document["record"] == [{"path": "title", "before": "A", "after": "B"}]
    assert document["command"] == {"added": ["2"], "removed": ["1"]}
    assert (document["costs"]["restart"], document["costs"]["autotune"]) == (True, "unknown")


def test_a_change_of_the_record_alone_needs_no_restart() -> None:
    found = difference(BEFORE, Side({**BEFORE.recipe, "title": "B"}, BEFORE.argv, BEFORE.digest))
    assert (found.any, found.restart, found.changes) == (True, False, ())
    assert found.record == (Change("title", "A", "B"),)
