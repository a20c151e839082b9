from dataclasses import replace

from gb300serve.compare.changes import Effect
from gb300serve.compare.costs import Facts, Recorded, costs
from gb300serve.core.diagnostics import Diagnostic
from gb300serve.fit.checkpoint import checkpoints
from gb300serve.fit.memory import memory_plan
from gb300serve.fit.request import demand_of

FLASH = checkpoints()[0]
BOOTS = {boot.name: boot for boot in FLASH.boots}
NEW = Effect("a", "changes", "b", "engine.options.max_num_seqs")


def facts(name: str) -> Facts:
    boot = BOOTS[name]
    plan = memory_plan(FLASH, demand_of(boot.settings, boot.engine_version, boot.variant))
    return Facts(boot.engine_version, plan, 100, 4440, Recorded(boot.figures["autotune"], name))


def test_v11_to_v12_takes_experts_back_into_hbm() -> None:
    found = costs(facts("v11"), facts("v12"), [NEW], restart=True)
    assert round(found.back_in_hbm_gib or 0, 2) == 12.66
    document = found.as_json()
    assert list(document)[:4] == ["restart", "autotune", "kv_cache_gib", "boot_seconds"]
    assert document["kv_cache_gib"] == [10.05, 4.89]
    assert document["kv_cache_basis"] == ["measured", "measured"]
    assert document["offloaded_gib"] == [73.8281, 61.1719]
    assert document["grace_gib"] == [[262.6587, 396.0], [250.0024, 372.0]]
    assert (document["autotune"], document["tuning_seconds"], document["boot_seconds"]) == ("new", 4440, [100, 100])


def test_a_recorded_tuning_time_goes_before_the_usual_one() -> None:
    after = replace(facts("v12"), recorded=Recorded("cbf5ea8f", "another", 4800))
    assert costs(facts("v12"), after, [NEW], restart=True).tuning_seconds == 4800
    assert costs(facts("v12"), facts("v12"), [NEW], restart=True).tuning_seconds is None


def test_the_ledger_speaks_of_what_the_second_has_alone() -> None:
    one, other = (Diagnostic("REC002", "tried-before", "note", message) for message in ("slow", "slower"))
    found = costs(Facts(ledger=(one,)), Facts(ledger=(one, other)), [NEW], restart=True)
    assert found.ledger == (other,)


def test_what_is_not_known_is_null() -> None:
    found = costs(Facts(), Facts(), [], restart=False)
    assert (found.back_in_hbm_gib, found.tuning_seconds) == (None, None)
    assert found.as_json()["kv_cache_gib"] == [None, None]
