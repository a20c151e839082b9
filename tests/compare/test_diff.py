from dataclasses import replace

from gb300serve.autotune.identity import Change
from gb300serve.compare.costs import RecordedIdentity, ReleaseSummary
from gb300serve.compare.diff import Side, difference

BEFORE = Side("b/v1", {"title": "A", "engine": {"options": {"port": 1}}}, (("docker",), ("--port", "1")), "d1")
AFTER = Side("b/v2", {"title": "B", "engine": {"options": {"port": 2}}}, (("docker",), ("--port", "2")), "d2")


def test_no_difference() -> None:
    found = difference(BEFORE, BEFORE)
    assert not found.any
    assert found.as_json() == {
        "schema": "gb300serve.diff/1",
        "a": "b/v1",
        "b": "b/v1",
        "changes": [],
        "record": [],
        "command": {"added": [], "removed": []},
        "costs": {
            "restart": False,
            "autotune": "same",
            "kv_cache_gib": [None, None],
            "boot_seconds": [None, None],
            "autotune_reason": "the launch does not differ",
            "tuning_seconds": None,
            "tuning_seconds_range": None,
            "kv_cache_basis": [None, None],
            "offloaded_gib": [None, None],
            "grace_gib": [None, None],
            "evidence": [],
            "ledger": [],
        },
    }


def test_changes_record_and_words() -> None:
    document = difference(BEFORE, AFTER).as_json()
    assert list(document) == ["schema", "a", "b", "changes", "record", "command", "costs"]
    assert document["changes"] == [
        {
            "path": "engine.options.port",
            "before": 1,
            "after": 2,
            "effect": "listen port; tuning cache same: by the engine's source",
        }
    ]
    assert document["record"] == [{"path": "title", "before": "A", "after": "B"}]
    assert document["command"] == {"added": ["2"], "removed": ["1"]}
    assert (document["a"], document["b"]) == ("b/v1", "b/v2")
    assert (document["costs"]["restart"], document["costs"]["autotune"]) == (True, "same")


def test_recorded_identities_speak_for_the_fields_that_could_change_them() -> None:
    def side(schedule: list[list[int]], identity: str) -> Side:
        drafts = {"num_speculative_tokens_per_batch_size": schedule}
        options = {"speculative_config": drafts, "gpu_memory_utilization": len(schedule)}
        return Side(
            "b/v1",
            {"engine": {"options": options}},
            (),
            identity,
            ReleaseSummary(recorded=RecordedIdentity(identity, "a boot")),
        )

    found = difference(side([[1, 9, 4]], "11111111"), side([[1, 3, 4], [4, 9, 2]], "22222222"))
    assert found.effects == (
        "draft tokens per batch size; tuning cache new: recorded as 11111111 before, 22222222 after",
        "share of GPU memory for the engine; tuning cache same: the engine's source and the recorded boots agree",
    )


def test_a_change_of_the_record_alone_needs_no_restart() -> None:
    found = difference(BEFORE, replace(BEFORE, recipe={**BEFORE.recipe, "title": "B"}))
    assert (found.any, found.costs.restart, found.changes) == (True, False, ())
    assert found.record == (Change("title", "A", "B"),)


def test_an_option_that_changes_is_shown_with_its_name() -> None:
    found = difference(BEFORE, AFTER)
    assert (found.removed, found.added) == ((("--port", "1"),), (("--port", "2"),))
