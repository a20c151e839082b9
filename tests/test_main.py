"""`python -m gb300serve`: a program of its own, the same bytes wherever it runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LEAN = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "src"), "HOME": "/nonexistent"}


def program(
    *words: str | bytes, cwd: Path = ROOT, given: bytes = b"", variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "gb300serve", *words],
        env=LEAN | (variables or {}), cwd=cwd, input=given, capture_output=True, check=False, timeout=60,
    )  # fmt: skip


ELSEWHERE = [
    {"LC_ALL": "C", "LANG": "C"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "tr_TR.UTF-8", "TZ": "Pacific/Kiritimati"},
    {"PYTHONHASHSEED": "1", "TZ": "America/Caracas"},
    {"PYTHONHASHSEED": "4294967295", "COLUMNS": "20", "TERM": "xterm-256color"},
    {"PYTHONIOENCODING": "latin-1"},
    {"VLLM_API_KEY": "hunter2", "models": "/elsewhere", "NO_COLOR": "", "PAGER": "less"},
]


@pytest.mark.parametrize("words", [("compile", "v15"), ("compile", "v15", "--json"), ("show", "v14", "--json")])
def test_the_same_bytes_everywhere(words: tuple[str, ...], tmp_path: Path) -> None:
    first = program(*words)
    assert (first.returncode, first.stderr) == (0, b"")
    for variables in ELSEWHERE:
        assert program(*words, cwd=tmp_path, variables=variables).stdout == first.stdout


def test_characters_outside_ascii_under_any_encoding(tmp_path: Path) -> None:
    file = tmp_path / "réçette.yaml"
    words = ("compile", str(file), "--set", 'container.labels={a: "日本 😀"}')
    file.write_bytes((ROOT / "recipes" / "deepseek-v4.1-flash" / "v11.yaml").read_bytes())
    # Without UTF-8 mode and under the C locale, Python cannot name such a file.
    found = [program(*words, variables=variables) for variables in ELSEWHERE if "PYTHONUTF8" not in variables]
    assert {done.returncode for done in found} == {0}
    assert {done.stdout for done in found} == {found[0].stdout}
    assert "日本 😀".encode() in found[0].stdout


def test_a_file_name_that_is_not_utf8(tmp_path: Path) -> None:
    lane = tmp_path / "recipes" / "bench"
    lane.mkdir(parents=True)
    Path(os.fsdecode(bytes(lane) + b"/v\xff.yaml")).write_text("format: gb300serve/1\nlane: bench\n")
    done = program("lint", "--json", "recipes", cwd=tmp_path)
    assert done.returncode == 3
    assert rb"v\udcff.yaml" in done.stdout


def test_words_that_are_not_utf8() -> None:
    done = program("compile", "v14", "--set", b"title=\xff")
    assert (done.returncode, b"invalid YAML" in done.stderr) == (2, True)


def test_a_reader_that_goes_away() -> None:
    for words in (("schema",), ("compile", "v14"), ("list",)):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [sys.executable, "-m", "gb300serve", *words],
            env=LEAN, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
        os.close(writing)
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("closing", [">&-", "2>&-", ">&- 2>&-"])
def test_streams_that_the_caller_has_closed(closing: str) -> None:
    words = ["sh", "-c", f'exec "$@" {closing}', "sh", sys.executable, "-m", "gb300serve", "compile", "v14"]
    done = subprocess.run(words, env=LEAN, cwd=ROOT, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_interrupted_while_it_is_being_loaded(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    done = program("list", variables={"PYTHONPATH": os.pathsep.join((str(tmp_path), LEAN["PYTHONPATH"]))})
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"gb300serve: interrupted\n")


def test_exit_codes_reach_the_shell(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("format: gb300serve/1\n")
    codes = [
        program(*words).returncode
        for words in (
            ("list",),
            ("compile", "v99"),
            ("compile", str(tmp_path / "a.yaml")),
            ("compile", "v14", "--set", "container.gpus={name: GB300}"),
            ("diff", "v13", "v14", "--exit-code"),
        )
    ]
    assert codes == [0, 2, 3, 4, 5]


def test_a_log_from_standard_input_counts_lines_as_from_a_file(tmp_path: Path) -> None:
    log = b"\xff\n" + b"a\rb\r\n" * 3 + b"api_server.py: error: unrecognized arguments: --cpu-offload-param x\n"
    file = tmp_path / "boot.log"
    file.write_bytes(log)
    first = program("diagnose", str(file), "--json")
    assert first.returncode == 8
    assert b'"line": 5' in first.stdout
    assert program("diagnose", "-", "--json", given=log).stdout == first.stdout


@pytest.mark.parametrize("words", [("--help",), ("up", "--help"), ("list",)])
def test_standard_output_that_is_full(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gb300serve", *words],
            env=LEAN, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False, timeout=60,
        )  # fmt: skip
    assert done.stderr.decode().splitlines() == [
        "gb300serve: the result cannot be written: No space left on device",
        "  hint: check where standard output is redirected to",
    ]
    assert done.returncode == 6


def test_hints_name_the_program_as_it_was_run(tmp_path: Path) -> None:
    words, home = ("logs", "v14", "--on", "sim"), {"HOME": str(tmp_path)}
    found = [program(*words, variables=home | more) for more in ({}, {"GB300SERVE_PROGRAM": "scripts/gb300serve"})]
    hints = [done.stderr.decode().splitlines()[-1] for done in found]
    assert hints == ["  hint: gb300serve status --on sim", "  hint: scripts/gb300serve status --on sim"]
