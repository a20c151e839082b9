"""Measures what must stay fast, as ratios to a floor that is measured beside it, run by run.

A ratio is the median over pairs (ours, floor, ours, floor, …), so that a machine whose speed drifts does not decide.
Nothing here fails: figures are for reading, tests never depend on them.
"""

import argparse
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice, repeat
from pathlib import Path

from scripts._bench_following import ROOT, following, log_lines, ours
from scripts._bench_texts import doubled

SHIPPED = ROOT / "recipes" / "deepseek-v4.1-flash"

PARSE_AND_VALIDATE = """
import sys, yaml
from pathlib import Path
from gb300serve.recipe.model import Recipe
for path in sorted(Path(sys.argv[1]).rglob("*.yaml")):
    Recipe.model_validate(yaml.load(path.read_text(), yaml.CSafeLoader))
"""
READ = """
import sys
for line in open(sys.argv[1], encoding="utf-8", errors="replace", newline="\\n"):
    pass
"""
DIAGNOSE = """
import sys
from gb300serve.app.diagnose import diagnosed, read_log
diagnosed(read_log(sys.argv[1]))
"""
TRACEBACK = ROOT / "tests" / "boot" / "logs" / "missing-shard.log"


def run(arguments: list[str]) -> float:
    """Wall time of one run, in seconds."""
    began = time.perf_counter()
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)
    return time.perf_counter() - began


def paired(name: str, bound: str, ours: list[str], floor: list[str], runs: int) -> None:
    """Print the ratio of two commands, pair by pair."""
    run(ours), run(floor)  # warm: byte code, page cache
    pairs = [(run(ours), run(floor)) for _ in range(runs)]
    ratios = sorted(a / b for a, b in pairs)
    a, b = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(ratios)
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
    print(f"{name:44} {ratio:6.2f}x  ({spread}; bound {bound})  {a:8.3f} s against {b:8.3f} s")


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def recipes(directory: Path, count: int) -> Path:
    """`count` different recipes that stand alone, each its own lane."""
    text = subprocess.run(ours("show", "v14"), check=True, capture_output=True, text=True, cwd=ROOT).stdout
    for number in range(count):
        lane = f"lane-{number}"
        changed = text.replace("lane: deepseek-v4.1-flash", f"lane: {lane}").replace(
            "port: 30006", f"port: {1024 + number}"
        )
        path = directory / lane / "v14.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(changed, encoding="utf-8")
    return directory


def memory_of(arguments: list[str]) -> float:
    """Largest resident size of the children so far, in MiB, after running one more."""
    run(arguments)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def damaged_logs(size: int) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Names and contents of logs of about `size` bytes that no engine means to print."""
    lines = TRACEBACK.read_bytes().splitlines(keepends=True)
    chance = random.Random(1)  # noqa: S311 - the same data each time
    yield "tracebacks", islice(cycle(lines), size * len(lines) // TRACEBACK.stat().st_size)
    yield (
        "tracebacks, docker logs -t",
        (
            b"2026-11-29T22:%02d:%02d.%09dZ %s" % (number // 6000 % 60, number // 100 % 60, number % 100, line)
            for number, line in enumerate(islice(cycle(lines), size * len(lines) // TRACEBACK.stat().st_size))
        ),
    )
    yield "one line", repeat(b"x" * 79 + b" ", size // 80)
    yield (
        "the states of one bar",
        repeat(b"\rLoading shards:  50% Completed | 1/2 [00:01<00:01,  1.00s/it]", size // 61),
    )
    yield "binary data", (chance.randbytes(1000) for _ in range(size // 1000))


def alone(log: Path) -> tuple[float, float]:
    """Seconds of CPU time to diagnose a log, and the largest resident size in MiB."""
    # The kernel's figure for a child that has ended begins with the size of its parent.
    code = f"{DIAGNOSE}\nimport time\nprint(time.process_time(), open('/proc/self/status').read())"
    told = subprocess.run(python(code, str(log)), check=True, capture_output=True, text=True, cwd=ROOT).stdout
    return float(told.split()[0]), int(told.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs, smaller inputs")
    quick: bool = parser.parse_args().quick
    runs = 5 if quick else 21
    paired("--help / import typer", "1.5", ours("--help"), python("import typer"), runs)
    base = python("import typer, yaml; from pydantic import BaseModel")
    paired("compile v14 / import typer, yaml, pydantic", "1.6", ours("compile", "v14"), base, runs)
    paired("the wrapper / the program it runs", "-", [str(ROOT / "scripts/gb300serve"), "--help"], ours("--help"), runs)
    for name, twice, once in doubled():
        paired(name, "2", twice, once, 3)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        sizes = (100, 1000) if quick else (100, 1000, 10000)
        for size in sizes:
            made = str(recipes(directory / str(size), size))
            floor = python(PARSE_AND_VALIDATE, made)
            paired(
                f"lint {size} recipes / parse and validate", "1.5", ours("lint", made), floor, 3 if size > 1000 else 5
            )
            print(f"{'':44} peak memory of everything so far {memory_of(ours('lint', made)):.0f} MiB")
        log = directory / "engine.log"
        log.write_text("".join(log_lines(100_000 if quick else 1_000_000)), encoding="utf-8")
        paired("diagnose a log / reading its lines", "40", python(DIAGNOSE, str(log)), python(READ, str(log)), 3)
        print(f"{'':44} peak memory of everything so far {memory_of(python(DIAGNOSE, str(log))):.0f} MiB")
        for name, content in damaged_logs(20_000_000 if quick else 200_000_000):
            with log.open("wb") as file:
                file.writelines(content)
            seconds, memory = alone(log)
            print(
                f"{f'diagnose {name}, {log.stat().st_size // 10**6} MB':44} {seconds:6.1f}  s of CPU, {memory:.0f} MiB"
            )
            print(f"{'':44} bounds for 200 MB: 20 s, 100 MiB")
        for name, (silent, chatty) in following(directory, 10 if quick else 30):
            print(f"{f'up {name}, reading 1,000 lines a second':44} {chatty:7.1%}  of a core; silent {silent:.1%}")
            print(f"{'':44} following costs {chatty - silent:.1%} (bound 5 %)")


if __name__ == "__main__":
    main()
