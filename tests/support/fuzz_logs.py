"""Engine logs as they never were: boots of the simulated engine, cut, shuffled, repeated and damaged."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from gb300serve.engines.logs import SIGNALS
from gb300serve.simulator.engine.faults import FAULTS
from gb300serve.simulator.engine.script import Repeat, Script, Write
from gb300serve.simulator.engine.settings import SimulatorEnvironment
from tests.support.fuzz_recipes import SECRETS
from tests.support.simulated import DAY_ZERO, PIN_HOOK, V14, boot_script, changed

CAUSES = SIGNALS.unknown.causes
REAL = Path(__file__).parents[1] / "boot" / "logs"
# A million bytes are ten whole boots; reading them is well below the second that one log may take.
LARGEST = 1_000_000
_LONG = 200_000

_ECHOES = (
    *("{", "{}", "[]", "{'a': x()}", "{" * 500, "{'model_tag': " * 200, "{'cpu_offload_gb': 1e999}", "None", "{1: 2}"),
    *("{'cpu_offload_gb': 'x', 'max_model_len': -5}", "{'max_model_len': 10**9}", "{**1}", "{'a': <b: 'c'>}", "('a',)"),
    *("{'cpu_offload_params': 5, 'speculative_config': [1]}", "{'max_model_len': " + "9" * 5000 + "}"),
    *("{'cpu_offload_gb': 55.0, 'cpu_offload_params': ['a.*']}", "{'max_model_len': '1M', 'cpu_offload_gb': 10**40}"),
)  # fmt: skip
_TELLING = (
    "error: unrecognized arguments: --token {}",
    "ValueError: key {} is wrong",
    "{}",
    "non-default args: {{'a': '{}'}}",
    "OSError: https://user:{}@host/x",
    "(EngineCore pid=1) ERROR 11-30 00:53:21 [a.py:1] RuntimeError: {}",
)

Lines: TypeAlias = "list[bytes]"
Change: TypeAlias = "Callable[[Lines, random.Random], Lines]"


def boots() -> tuple[bytes, ...]:
    """Whole boots: good ones, every fault that can be rehearsed, refusals, and those of the real engine."""
    launches = [
        (V14, DAY_ZERO, None),
        (V14, DAY_ZERO, 0),
        (V14, replace(DAY_ZERO, env=PIN_HOOK), None),
        (changed("--cpu-offload-gb", "55"), DAY_ZERO, None),
        (changed("--cpu-offload-gb", "0"), DAY_ZERO, None),
        (changed("--cpu-offload-params", "experts.*"), DAY_ZERO, None),
        (changed("--tool-call-parser", "none_such"), DAY_ZERO, None),
        (V14, SimulatorEnvironment(version="0.32.0"), None),
        *((V14, replace(DAY_ZERO, fault=name), None) for name in FAULTS),
    ]
    made = [_written(boot_script(words, around, stored)) for words, around, stored in launches]
    return (*made, *(path.read_bytes() for path in sorted(REAL.glob("*.log"))))


def _written(script: Script) -> bytes:
    """What the boot writes; an endless heartbeat three times."""
    parts = []
    for event in script:
        if isinstance(event, Write):
            parts.append(event.text)
        elif isinstance(event, Repeat):
            parts += [event.text.format(stamp=f"11-30 01:0{minute}:00") for minute in range(3)]
    return "".join(parts).encode()


class LogMutator:
    """Mutations of whole boots, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._boots = boots()

    def log(self) -> bytes:
        """One log."""
        chance = self._chance
        lines = chance.choice(self._boots).split(b"\n")
        for _ in range(chance.choice((1, 1, 2, 3, 5))):
            lines = chance.choice(_CHANGES)(lines, chance) or [b""]
        return b"\n".join(lines)[:LARGEST]


def _cut(lines: Lines, chance: random.Random) -> Lines:
    return lines[: chance.randrange(len(lines) + 1)]


def _cut_in_a_line(lines: Lines, chance: random.Random) -> Lines:
    index = chance.randrange(len(lines))
    return [*lines[:index], lines[index][: chance.randrange(len(lines[index]) + 1)]]


def _from_the_middle(lines: Lines, chance: random.Random) -> Lines:
    return lines[chance.randrange(len(lines)) :]


def _shuffle(lines: Lines, chance: random.Random) -> Lines:
    start = chance.randrange(len(lines))
    end = start + chance.choice((3, 20, len(lines)))
    part = lines[start:end]
    chance.shuffle(part)
    return [*lines[:start], *part, *lines[end:]]


def _repeat(lines: Lines, chance: random.Random) -> Lines:
    return (lines * chance.choice((2, 3, 5)))[:20_000]


def _repeat_a_line(lines: Lines, chance: random.Random) -> Lines:
    index = chance.randrange(len(lines))
    return [*lines[:index], *[lines[index]] * chance.choice((2, 70, 3000)), *lines[index:]]


def _drop(lines: Lines, chance: random.Random) -> Lines:
    share = chance.choice((0.05, 0.5))
    return [line for line in lines if chance.random() > share]


def _garbage(lines: Lines, chance: random.Random) -> Lines:
    noise = chance.randbytes(chance.choice((1, 100, 5000)))
    index = chance.randrange(len(lines) + 1)
    return [*lines[:index], *noise.split(b"\n"), *lines[index:]]


def _flip(lines: Lines, chance: random.Random) -> Lines:
    changed_lines = list(lines)
    for _ in range(chance.choice((1, 10, 100))):
        index = chance.randrange(len(lines))
        line = bytearray(changed_lines[index])
        if line:
            line[chance.randrange(len(line))] = chance.randrange(256)
            changed_lines[index] = bytes(line)
    return changed_lines


def _returns(lines: Lines, chance: random.Random) -> Lines:
    ending = chance.choice((b"\r", b"\r\r", b"\r\n\r"))
    if chance.random() < 0.3:
        return [b"\r".join(lines)[:_LONG]]
    return [line + ending if chance.random() < 0.5 else line for line in lines]


def _stamped(lines: Lines, chance: random.Random) -> Lines:
    form = chance.choice(
        (b"2026-11-30T00:53:%02d.123456789Z ", b"vllm-1  | ", b"2026-13-45T99:99:99Z ", b"[1,0]<stdout>: ", b"\x1b[36m")
    )
    return [(form % (i % 60) if b"%" in form else form) + line for i, line in enumerate(lines)]


def _dates(lines: Lines, chance: random.Random) -> Lines:
    new = chance.choice((b"12-31 23:59:5", b"02-29 00:00:0", b"00-00 00:00:0", b"99-99 99:99:9", b"01-01 00:00:0"))
    return [line.replace(b"11-30 00:5", new) if chance.random() < 0.5 else line for line in lines]


def _number(lines: Lines, chance: random.Random) -> Lines:
    number = chance.choice((b"9" * 400, b"-1", b"nan", b"inf", b"0", b"1e999", b".", b"-", b",,,", "٣".encode(), b""))
    old = chance.choice(
        (b"61.17", b"4.87", b"1,048,576", b"1048576", b"210", b"0.97", b"60.0", b"2.2", b"55", b"30006")
    )
    return [line.replace(old, number) for line in lines]


def _huge(lines: Lines, chance: random.Random) -> Lines:
    """A line that is long in the way its signature would have to search it."""
    texts = [cause.needle for cause in CAUSES] + [
        signal.start for row in SIGNALS.unknown.by_word.values() for signal in row
    ]
    piece = chance.choice(
        (chance.choice(texts), chance.choice(texts) + " ", "Error: " + chance.choice(texts), "(", "[1")
    )
    if chance.random() < 0.3:
        piece = chance.choice(texts) + chance.choice(texts)
    size = chance.choice((2_000, 20_000, _LONG))
    head = chance.choice(
        ("", chance.choice(texts), "ValueError: ", "(EngineCore pid=3) ERROR 11-30 00:53:21 [a.py:1] ")
    )
    line = (head + piece * (size // len(piece.encode()) + 1))[:size] + chance.choice(
        ("", chance.choice(texts), "'", ")")
    )
    index = chance.randrange(len(lines) + 1)
    return [*lines[:index], line.encode(), *lines[index:]]


def _a_cause(lines: Lines, chance: random.Random) -> Lines:
    """The literal text of a signature, without what usually follows it."""
    cause = chance.choice(CAUSES)
    before = chance.choice(("", "ValueError: ", "vllm serve: error: argument --x: ", "  ", "docker: "))
    after = chance.choice(("", " x", ": ''", " (1, 2)", " {'a': 1}", " \U0001f600", ": " + "0" * 400, " -nan GiB"))
    index = chance.randrange(len(lines) + 1)
    return [*lines[:index], f"{before}{cause.needle}{after}".encode(), *lines[index:]]


def _echo(lines: Lines, chance: random.Random) -> Lines:
    """Another echo of the arguments."""
    value = chance.choice(_ECHOES)
    return [_with_echo(line, value.encode()) for line in lines]


def _with_echo(line: bytes, value: bytes) -> bytes:
    head, found, _ = line.partition(b"non-default args: ")
    return head + found + value if found else line


def _secret(lines: Lines, chance: random.Random) -> Lines:
    secret = chance.choice(SECRETS)
    form = chance.choice(_TELLING)
    index = chance.randrange(len(lines) + 1)
    return [*lines[:index], form.format(secret).encode(), *lines[index:]]


_CHANGES: tuple[Change, ...] = (
    *(_cut, _cut_in_a_line, _from_the_middle, _shuffle, _repeat, _repeat_a_line, _drop, _garbage, _flip, _returns),
    *(_stamped, _dates, _number, _huge, _huge, _a_cause, _a_cause, _echo, _secret),
)  # fmt: skip
