import json

import pytest

from gb300serve.journal.journal import Asker, asker_of, entry_of, text_of
from tests.support.entries import ALICE, V13, entry

WHOLE = entry(before=(V13,), reason="faster", verb="up", station="east")


def test_an_entry_as_a_line() -> None:
    assert WHOLE.as_json() == {
        "at": "2026-11-29T19:50:03.000Z",
        "verb": "up",
        "on": "docker",
        "by": {"user": "alice", "host": "station", "pid": 4711},
        "from": [{"release": "deepseek-v4.1-flash/v13", "container": "dsv41-vllm", "id": "id-v13", "plan": "plan-v13"}],
        "to": [{"release": "deepseek-v4.1-flash/v14", "container": "dsv41-vllm", "id": "id-v14", "plan": "plan-v14"}],
        "result": "ready",
        "said": "v14 became READY",
        "reason": "faster",
        "run": "r1",
        "station": "east",
    }


def test_a_line_is_read_back_and_later_keys_are_passed_over() -> None:
    assert entry_of(json.loads(json.dumps(WHOLE.as_json() | {"later": 1}))) == WHOLE


@pytest.mark.parametrize("missing", ["at", "verb", "on", "by", "result"])
def test_what_lacks_the_essential_is_no_entry(missing: str) -> None:
    assert entry_of(WHOLE.as_json() | {missing: None}) is None


def test_other_json_is_no_entry() -> None:
    values: tuple[object, ...] = (None, [], "x", 1, {})
    assert [entry_of(value) for value in values] == [None] * 5


def test_askers() -> None:
    assert asker_of({"user": "alice", "host": "station", "pid": 4711}) == ALICE
    assert asker_of({"user": "alice"}) is None
    assert str(Asker("alice", "station", 4711)) == "alice@station, process 4711"


def test_texts() -> None:
    assert (text_of({"a": "b"}, "a"), text_of({"a": 1}, "a"), text_of({}, "a")) == ("b", None, None)
