"""A log gives the same diagnosis wherever it was copied from. `scripts/test --long` takes every log in every style."""

from collections.abc import Iterable
from itertools import product
from pathlib import Path

import pytest

from gb300serve.boot.diagnosis import Diagnosis, Evidence
from gb300serve.boot.phases import Phase
from gb300serve.boot.prefixes import BLOCK, strip_prefixes
from gb300serve.engines.logs import boot_machine
from tests.boot.logs import Log
from tests.boot.test_reasons import MODULES
from tests.support.fuzz_logs import boots
from tests.support.log_styles import INNERMOST, STYLES, times, wrapped
from tests.support.long import LONG

_SGLANG = (path.read_bytes() for path in sorted((Path(__file__).parent / "logs_sglang").glob("*.log")))
LOGS = (
    *(case.lines for module in MODULES for case in module.CASES),
    *(log.decode("utf-8", "replace").rstrip("\n").split("\n") for log in (*boots(), *_SGLANG)),
    Log().boot().lines,
    Log().arguments().engine().heartbeats(40).lines,
)
# A fixed slice: each style has other logs than the one before it.
STYLE_LOGS, PAIR_LOGS, PAIR_STEP = (len(LOGS), 3, 1) if LONG else (4, 1, 29)
PAIRS = [pair for pair in product(STYLES, STYLES) if pair[0] not in INNERMOST]


def diagnosed(lines: Iterable[str]) -> Diagnosis:
    machine = boot_machine()
    for text, at in strip_prefixes(lines):
        machine.feed(text, at)
    return machine.result()


def result(lines: Iterable[str]) -> tuple[object, ...]:
    """Everything but the seconds."""
    found = diagnosed(lines)
    values = {name: value for name, value in found.values.items() if "seconds" not in name}
    return found.state, found.phase, found.reason, values, found.boots, [item.line for item in found.evidence]


def slice_of(number: int, count: int) -> list[list[str]]:
    return [LOGS[(number * 7 + index * 31) % len(LOGS)] for index in range(count)]


def in_styles(lines: list[str], *styles: str) -> list[str]:
    """The first style is the outermost one."""
    printed = times(lines)
    for style in reversed(styles):
        lines = STYLES[style](lines, printed)
    return lines


@pytest.mark.parametrize("style", STYLES)
def test_a_style_does_not_change_the_diagnosis(style: str) -> None:
    for lines in slice_of(list(STYLES).index(style), STYLE_LOGS):
        assert result(in_styles(lines, style)) == result(lines)


@pytest.mark.parametrize("outer", [style for style in STYLES if style not in INNERMOST])
def test_a_style_within_another_does_not_change_the_diagnosis(outer: str) -> None:
    for number, styles in list(enumerate(PAIRS))[::PAIR_STEP]:
        if styles[0] == outer:
            for lines in slice_of(number, PAIR_LOGS):
                assert result(in_styles(lines, *styles)) == result(lines), styles


def texts(lines: Iterable[str]) -> list[str]:
    return [text for text, _ in strip_prefixes(lines)]


def test_a_plain_log_stays_as_it_is() -> None:
    for lines in LOGS:
        assert texts(lines) == [line.rstrip() for line in lines]


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("style", ["docker -t", "compose v2", "journal short", "kubectl both", "indented"])
def test_a_wrapped_line_is_one_line(style: str, width: int) -> None:
    lines = [
        line.rpartition("\r")[2] for line in Log().arguments().engine().loaded().sized().failing("ValueError: x").lines
    ]
    for rows in (
        wrapped(lines, width),
        wrapped(in_styles(lines, style), width),
        in_styles(wrapped(lines, width), "quoted"),
    ):
        assert [text for text in texts(rows) if text] == [line for line in lines if line]
        assert len(texts(rows)) == len(rows)


def test_equal_lines_of_the_greatest_width_are_not_wrapped() -> None:
    bars = [
        f"Loading shards: {number:3}% Completed | {number:2}/99 [00:{number:02}<01:10,  2.33s/it]"
        for number in range(99)
    ]
    table = ["+---------+", "| GPU  0  |", "|=========|", "|  0  N/A |", "+---------+"]
    frames = ['  File "/a.py", line 7, in main', "    main()", "ValueError: x"] * 3
    for lines in (bars, [line * 9 for line in table], frames):
        assert texts(lines) == lines


@pytest.mark.parametrize(
    ("lines", "plain"),
    [
        (["2026-10-24T21:21:03.0Z stderr P ab", "2026-10-24T21:21:03.1Z stderr F  c"], ["ab c", ""]),
        (
            [f'{{"log":"{"ab " * 5000}","stream":"stderr"}}', '{"log":"c\\n","stream":"stderr"}', "{}"],
            ["ab " * 5000 + "c", "", "{}"],
        ),
        (['{"log":"a","stream":"stderr"}', '{"log":"b","stream":"stderr","kubernetes":{}}'], ["a", "b"]),
        (['{"MESSAGE":[27,91,51,54,109,120,27,91,48,109],"__REALTIME_TIMESTAMP":"1"}'], ["x"]),
        (['{"MESSAGE":[900],"__REALTIME_TIMESTAMP":"1"}', "x"], ['{"MESSAGE":[900],"__REALTIME_TIMESTAMP":"1"}', "x"]),
        (["{" * 9000 + "}", '{"log": 1, "stream": 2}', "{}"], ["{" * 9000 + "}", '{"log": 1, "stream": 2}', "{}"]),
        (["<30>Oct 10 14:22:05 kestrel gannet[7]: x", "Oct 10 14:22:06 kestrel kernel: y"], ["x", "y"]),
        (["1792000000.123456 kestrel gannet[7]: x", "[   12.345678] kestrel gannet[7]: y"], ["x", "y"]),
        (["\x01\x00\x00\x00\x00\x00\x00\x02x", "\x00\x00y"], ["x", "y"]),
        (["412:ValueError: x"], ["ValueError: x"]),
        (["7:x", "8-y", "--", "19:z", "20-"], ["x", "y", "--", "z", ""]),
        (["0: x", "1: y", "srun: error: kestrel: task 1: Exited"], ["x", "y", "srun: error: kestrel: task 1: Exited"]),
        (["following gannet-0", "gannet-0 engine x", "gannet-0 engine y"], ["following gannet-0", "x", "y"]),
        (["10/31/2026 09:10:02 x", "10/31/2026 09:10:03.5 y"], ["x", "y"]),
        (["kestrel gannet: INFO:     x", *["kestrel gannet: y"] * 2, "kestrel gannet:"], ["INFO:     x", "y", "y", ""]),
        (["GANNETINFO 11-30 00:53:21 [a.py:1] x"] * 2, ["INFO 11-30 00:53:21 [a.py:1] x"] * 2),
        (["\ufffd\ufffd\x03\ufffdab", "caf\ufffd is open"], ["", "caf\ufffd is open"]),
        (["\x1b]0;title\x07a\x1b(Bb\x1b[2K", "\x1b[1Ac"], ["ab", "c"]),
    ],
)  # fmt: skip
def test_what_a_line_says(lines: list[str], plain: list[str]) -> None:
    assert texts(lines) == plain


@pytest.mark.parametrize(
    "lines",
    [
        ["2026-09-18 17:51:30,911 - INFO - autotuner.py:972 - x"] * 2,
        ["just words | and more", "x"],
        ["/usr/lib/a.py:12: UserWarning: x", "INFO:     y"],
        ["vllm serve: error: x"] * 3,
        ["[2026-10-12 19:41:03 TP0] x", "ValueError: [30m is not a duration"],
        ["ERROR: [0] x", "8: y"],
        ["> x", "y", "z"],
        [""],
        [],
    ],
)
def test_what_is_not_a_prefix(lines: list[str]) -> None:
    assert texts(lines) == lines


@pytest.mark.parametrize(
    ("stamps", "seconds"),
    [
        (("2026-12-31T23:59:50.5Z ", "2027-01-01T00:00:20.75Z "), 30.25),
        (("Dec 31 23:59:50 kestrel gannet[7]: ", "Jan  1 00:00:20 kestrel gannet[7]: "), 30.0),
        (("Thu 2026-12-31 23:59:50 CET kestrel gannet[7]: ", "Fri 2027-01-01 00:00:20 CET kestrel gannet[7]: "), 30.0),
        (("1792000000.5 k g[7]: ", "1792000030.5 k g[7]: "), None),  # not a form of journald: it prints six digits
        (("1792000000.500000 k g[7]: ", "1792000030.750000 k g[7]: "), 30.25),
        (("[  100.500000] k g[7]: ", "[  130.750000] k g[7]: "), 30.25),
        (("10. Okt 23:59:50 k g[7]: ", "10. Okt 23:59:50 k g[7]: "), None),
        (("Okt 10 23:59:50 k g[7]: ", "Okt 10 23:59:50 k g[7]: "), None),
        (("a-1  | 2026-10-10T10:00:00Z ", "a-1  | 2026-10-10T10:00:30Z "), 30.0),
        (("2026-11-04 08:44:09.118 | ", "2026-11-04 08:44:10.118 | "), 1.0),
    ],
)
def test_seconds_come_from_the_prefixes(stamps: tuple[str, str], seconds: float | None) -> None:
    own = "INFO 11-30 00:53:21 [a.py:1] x"
    first, last = strip_prefixes(stamp + own for stamp in stamps)
    assert first[1] == (None if seconds is None else 0.0)
    assert last[1] == (None if seconds is None else pytest.approx(seconds))


def test_docker_stamps_and_escapes_do_not_hide_a_line() -> None:
    lines = [
        "2026-12-31T23:59:50.000000001Z \x1b[0;36m(APIServer pid=1)\x1b[0;0m INFO 12-31 23:59:50 [a.py:1]"
        " non-default args: {'port': 31007}",
        "2027-01-01T00:00:20.500000000Z (EngineCore pid=8) INFO 01-01 00:00:20 [a.py:1] Starting to load model /m...",
        "2027-01-01T00:00:21.000000000Z PermissionError: [Errno 13] Permission denied: '/root/.cache/vllm/x'",
    ]
    diagnosis = diagnosed(lines)
    assert diagnosis.phases[0] == (Phase.STARTING, 30.5)
    assert diagnosis.reason == "permission-denied"
    assert diagnosis.values == {"path": "/root/.cache/vllm/x"}
    assert diagnosis.evidence == (Evidence(3, lines[2].partition(" ")[2]),)


def test_seconds_of_lines_out_of_order() -> None:
    moments = ("09.5", "10.25", "10.75", "10.5", "09.75", "09.875", "11", "11.5")
    found = [at for _, at in strip_prefixes(f"2026-11-04T08:44:{moment}Z x" for moment in moments)]
    assert found == [0.0, 0.75, 1.25, 1.25, 1.25, 1.25, 1.5, 2.0]


def test_seconds_in_json() -> None:
    lines = [
        '{"MESSAGE":"a","__REALTIME_TIMESTAMP":"1792000000500000"}',
        '{"MESSAGE":"b","__REALTIME_TIMESTAMP":"1792000030750000"}',
    ]
    assert list(strip_prefixes(lines)) == [("a", 0.0), ("b", pytest.approx(30.25))]


def test_lines_without_a_stamp_go_on_by_their_own() -> None:
    """Their stamps may be those of another zone."""
    log = Log().arguments().engine()
    stamped = in_styles(log.lines, "docker -t")
    rest = log.core("Starting to load model /ckpt...", 30).core("Graph capturing finished in 30 secs", 40).lines
    assert [seconds for _, seconds in diagnosed([*stamped, *rest[len(stamped) :]]).phases] == [20.0, 40.0]


def test_a_text_of_equal_rows_takes_no_more_than_its_length() -> None:
    """Joined one by one, these rows would be copied 20,000 times."""
    rows = [f"{number:05}"[::-1] * 16 for number in range(BLOCK // 100)]
    assert texts([*rows, "end"]) == ["".join(rows) + "end", *[""] * len(rows)]
    stamp = "2026-10-24T21:21:03.0Z stderr"
    assert texts([f"{stamp} P a" for _ in rows] + [f"{stamp} F b"])[0] == "a" * len(rows) + "b"


def test_each_block_has_its_own_form() -> None:
    """A log of one source after that of another."""
    plain = [f"INFO:     {'x' * 90} {number}" for number in range(2 * BLOCK // 100)]
    both = texts([*plain, *(f"gannet-1  | {line}" for line in plain)])
    assert both == plain * 2
