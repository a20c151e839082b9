from gb300serve.boot.log_facts import LogFacts, TuningOutcome
from gb300serve.engines.logs import boot_machine
from tests.boot.logs import Log


def heard(lines: list[str]) -> LogFacts:
    machine, found = boot_machine(), LogFacts("non-default args:")
    for line in lines:
        found.take(line, machine.feed(line))
    return found


def sized() -> Log:
    return Log().arguments().engine().loaded().sized()


def test_a_loaded_set_is_a_hit() -> None:
    tuning = heard(sized().tuned(150).lines).tuning
    assert tuning is not None
    assert (tuning.outcome, tuning.loaded) == ("hit", 150)
    assert tuning.sentence() == "tuning cache: hit, 150 configurations loaded"


def test_nothing_loaded_is_a_miss() -> None:
    log = sized().tuned(0)
    log.tuner("Saved 191 configs to /x/autotune_configs.json (191 new, 0 from previous config)")
    tuning = heard(log.lines).tuning
    assert tuning is not None
    assert tuning.as_json()["cache"] == "miss"
    assert tuning.sentence() == "tuning cache: miss, 191 tuned"


def test_a_set_that_lacks_some_is_partial() -> None:
    log = sized().tuned(150)
    log.tuner("Saved 171 configs to /x/autotune_configs.json (21 new, 150 from previous config)")
    tuning = heard(log.lines).tuning
    assert tuning is not None
    assert (tuning.outcome, tuning.loaded, tuning.new) == ("partial", 150, 21)
    assert tuning.sentence() == "tuning cache: partial, 150 configurations loaded, 21 tuned"


def test_a_set_of_another_environment_is_a_miss() -> None:
    log = sized()
    log.tuner(
        "Cache file /x/autotune_configs.json was created in a different environment (cublas: cached 13.0.0.19,"
        " current 13.1.0.3). Ignoring cached configs. Results will not be saved to this file"
    )
    assert heard(log.lines).tuning == TuningOutcome("miss")


def test_a_boot_that_does_not_come_so_far_says_nothing_of_it() -> None:
    assert heard(sized().lines).tuning is None


def test_another_boot_begins_anew() -> None:
    again = [*sized().tuned(150).lines, *Log().arguments("'port': 31008").engine().lines]
    found = heard(again)
    assert found.tuning is None
    assert found.receipts.keys() == {"architecture", "engine_version"}
    assert "31008" in found.echo


def test_the_echo_is_its_record_without_the_header() -> None:
    line = "\r".join(("Loading: 100%", Log().arguments("'port': 1").lines[0]))
    assert heard([line]).echo == "non-default args: {'model_tag': '/ckpt', 'port': 1}"
