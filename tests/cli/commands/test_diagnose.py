from pathlib import Path

from tests.support.invoke import run

REFUSED = "api_server.py: error: unrecognized arguments: --cpu-offload-param x\n"


def test_text(tmp_path: Path) -> None:
    log = tmp_path / "boot.log"
    log.write_text(f"first\n{REFUSED}")
    answer = run("diagnose", log)
    assert answer.code == 8
    assert answer.out.splitlines()[:3] == [
        "vLLM failed while starting: the engine does not know an argument.",
        "reason: unknown-argument",
        f"  line 2: {REFUSED.strip()}",
    ]


def test_json(tmp_path: Path) -> None:
    log = tmp_path / "boot.log"
    log.write_bytes(f"a\rb\r\n{REFUSED}".encode() + b"\xff\x1b[31m\n")
    answer = run("diagnose", log, "--json")
    assert answer.code == 8
    assert list(answer.document) == [
        "schema", "state", "phase", "reason", "values", "evidence", "advice", "phases", "boots", "summary", "tuning",
    ]  # fmt: skip
    assert answer.document["schema"] == "gb300serve.diagnosis/1"
    assert answer.document["evidence"] == [{"line": 2, "text": REFUSED.strip()}]


def test_a_text_that_is_no_log_of_a_boot(tmp_path: Path) -> None:
    log = tmp_path / "notes.txt"
    log.write_text("milk\nbread\n")
    answer = run("diagnose", log)
    said = "the log is too short, or it is not an engine log\n"
    assert (answer.code, answer.out.splitlines()[0], answer.err) == (0, "The log shows no boot of an engine.", said)
    log.write_text(f"milk\n{REFUSED}")
    assert run("diagnose", log).err == ""


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "absent", "No such file or directory"), (tmp_path, "Is a directory")):
        answer = run("diagnose", path)
        assert (answer.code, answer.err.splitlines()[0]) == (2, f"gb300serve: {path}: {reason}")
