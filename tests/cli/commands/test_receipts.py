import json
from pathlib import Path

import pytest

from tests.support.invoke import Answer, run
from tests.support.simulated import V14, boot_script, changed, said

PORT = ("--port", "30006")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A good boot of v14."""
    path = tmp_path / "boot.log"
    path.write_text("\n".join(said(boot_script((*V14, *PORT)))) + "\n")
    return path


def receipts(*words: str | Path) -> Answer:
    return run("receipts", *words)


def test_a_good_boot_keeps_all(log: Path) -> None:
    answer = receipts("check", "v14", log)
    assert answer.code == 0
    assert answer.out == (
        "kept: Total CPU offloaded parameters: {value} (61.17)\n"
        "kept: Available KV cache memory: {value} GiB (4.87)\n"
        "kept: Loaded {value} configs (210)\n"
        "kept: the engine's echo of its arguments (17 arguments)\n"
        f"deepseek-v4.1-flash/v14 ({log}): 4 of 4 kept\n"
    )


def test_a_receipt_that_a_good_boot_lacks_is_wrong(log: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "v14x.yaml"
    shown = run("show", "v14").out
    at = shown.index("  receipts:\n")
    line = '  - {line: "PIN_HOT rowmap layer {value} ", value: 0, tolerance: 0, basis: published}\n'
    recipe.write_text(shown[:at] + "  receipts:\n" + line + shown[at + len("  receipts:\n") :])
    answer = receipts("check", recipe, log)
    assert answer.code == 9
    assert answer.out.splitlines()[0] == ("wrong in the recipe: missing: PIN_HOT rowmap layer {value}  (expected 0)")


def test_a_log_of_other_arguments_says_so_and_is_no_fault_of_the_recipe(tmp_path: Path) -> None:
    log = tmp_path / "boot.log"
    log.write_text("\n".join(said(boot_script((*V14, "--port", "30007")))) + "\n")
    answer = receipts("check", "v14", log)
    assert answer.code == 0
    assert answer.err == (
        "the log belongs to another command: different: engine argument port (expected 30006, found 30007)\n"
    )


def test_json(log: Path) -> None:
    document = receipts("check", "v14", log, "--json").document
    assert list(document) == ["schema", "release", "log", "verdict", "receipts"]
    assert (document["schema"], document["verdict"]) == ("gb300serve.receipts/1", "kept")
    assert [one["state"] for one in document["receipts"]] == ["kept"] * 4


def test_what_is_learned_is_kept_by_the_boot_that_taught_it(log: Path, tmp_path: Path) -> None:
    learned = receipts("learn", log)
    assert learned.code == 0
    head, _, _ = run("show", "v14").out.partition("boot:\n")
    recipe = tmp_path / "learned.yaml"
    recipe.write_text(head + learned.out)
    answer = receipts("check", recipe, log)
    assert (answer.code, answer.out.count("kept: ")) == (0, 8), answer.out + answer.err


def test_learned_as_json(log: Path) -> None:
    document = receipts("learn", log, "--json").document
    assert list(document) == ["schema", "log", "boot"]
    assert document["boot"]["tuning_cache"]["configs"] == 210
    assert len(document["boot"]["receipts"]) == 7


def test_a_run_is_found_by_its_name(log: Path, tmp_path: Path) -> None:
    run_directory = tmp_path / ".local" / "state" / "gb300serve" / "runs" / "20261129T195003Z-x-v14"
    run_directory.mkdir(parents=True)
    (run_directory / "log.txt").write_text(log.read_text())
    answer = run("receipts", "learn", run_directory.name, "--json", variables={"HOME": str(tmp_path)})
    assert answer.code == 0
    assert answer.document["log"] == run_directory.name
    assert run("receipts", "learn", run_directory, "--json").document["boot"] != {}


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (changed("--cpu-offload-gb", "55"), "failed in sizing-kv-cache, kv-cache-too-small"),
        (V14, "booting in loading-weights"),
    ],
)
def test_a_bad_boot_proves_nothing(tmp_path: Path, words: tuple[str, ...], state: str) -> None:
    log = tmp_path / "bad.log"
    lines = said(boot_script(words))
    log.write_text("\n".join(lines if "failed" in state else lines[:20]) + "\n")
    for said_words in (("check", "v14", log), ("learn", log)):
        answer = receipts(*said_words)
        assert answer.code == 8
        assert answer.err.splitlines()[0] == f"gb300serve: {log} is not the log of a good boot: {state}"


def test_a_boot_that_was_stopped_before_it_served_proves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "stopped.log"
    lines = said(boot_script(V14))[:20]
    log.write_text("\n".join([*lines, "(APIServer pid=1) INFO 11-29 [x.py:1] Received SIGTERM"]) + "\n")
    assert receipts("learn", log).code == 8


@pytest.mark.parametrize("words", [("learn",), ("check", "v14"), ("learn", "a", "b"), ("a", "b", "c", "d")])
def test_words_that_mean_nothing(words: tuple[str, ...]) -> None:
    answer = receipts(*words)
    assert (answer.code, "receipts check REF LOG" in answer.err) == (2, True)


def test_without_a_lane_there_is_nothing_to_show() -> None:
    answer = receipts("--on", "sim")
    assert (answer.code, answer.err.splitlines()[0]) == (6, "gb300serve: no lane is running")


def test_what_is_printed_as_json_is_one_object(log: Path) -> None:
    assert json.loads(receipts("learn", log, "--json").out)["schema"] == "gb300serve.receipts-learned/1"


def test_what_is_neither_a_run_nor_a_log_is_told_where_runs_lie(tmp_path: Path) -> None:
    answer = run("receipts", "learn", "v14", variables={"HOME": str(tmp_path)})
    assert (answer.code, answer.out, answer.err) == (
        2,
        "",
        "gb300serve: v14: No such file or directory\n"
        f"  hint: name a log file, a run (a directory's name below {tmp_path}/.local/state/gb300serve/runs), "
        "or - for standard input\n",
    )
