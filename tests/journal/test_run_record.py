import json

import pytest

from gb300serve.journal.runs import record_of
from tests.support.entries import record
from tests.support.fake_clock import START

WHOLE = record(
    process="boot/123",
    reason="faster",
    overrides=("engine.options.port=1",),
    kept=True,
    ended=START + 500.0,
    image={"reference": "a:b", "id": "sha256:aa", "digests": []},
    patches={"/p/hook.py": "aa"},
    phases=(("starting", 21.0), ("serving", 16.5)),
    receipts=({"name": "offload", "values": {"gib": 61.17}},),
    verdict={"message": "it failed"},
    exit={"tool": 8, "container": 1},
    log={"lines": 3, "complete": True},
)


def test_a_record_is_read_back() -> None:
    assert record_of(json.loads(json.dumps(WHOLE.as_json()))) == WHOLE
    assert record_of(json.loads(json.dumps(record().as_json()))) == record()


def test_the_schema_comes_first() -> None:
    assert next(iter(WHOLE.as_json().items())) == ("schema", "gb300serve.run/1")


@pytest.mark.parametrize("missing", ["schema", "run", "lane", "release", "on", "plan", "verb", "by", "began"])
def test_what_lacks_the_essential_is_no_record(missing: str) -> None:
    assert record_of(WHOLE.as_json() | {missing: None}) is None


def test_a_good_run_has_been_ready_whatever_came_later() -> None:
    assert record(state="died").good
    assert not record(ready_seconds=None, state="failed").good


def test_names() -> None:
    assert (WHOLE.ref, WHOLE.container_id) == ("deepseek-v4.1-flash/v14", "id-v14")
    assert record(container=None).container_id is None
