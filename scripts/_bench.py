"""Measures what must stay fast, as ratios to a floor that is measured beside it, run by run.

A ratio is the median over pairs (ours, floor, ours, floor, …), so that a machine whose speed drifts does not decide.
Nothing here fails: figures are for reading, tests never depend on them.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
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
from gb300serve.boot.machine import BootMachine
machine = BootMachine()
for line in open(sys.argv[1], encoding="utf-8", errors="replace", newline="\\n"):
    machine.feed(line)
machine.result()
"""


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


def ours(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "gb300serve", *arguments]


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


def log_lines(count: int) -> Iterator[str]:
    """A boot, then a server's days: access lines and the statistics of every ten seconds."""
    for number in range(count):
        stamp = f"09-18 {number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}"
        if number % 10 == 0:
            yield (
                f"(APIServer pid=1) INFO {stamp} [loggers.py:335] Engine 000: Avg prompt throughput: {number % 900}.4 "
                "tokens/s, Avg generation throughput: 301.7 tokens/s, Running: 5 reqs, Waiting: 0 reqs, "
                "GPU KV cache usage: 6.1%, Prefix cache hit rate: 41.3%\n"
            )
        elif number % 100 == 1:
            yield f"(EngineCore pid=364) WARNING {stamp} [scheduler.py:88] request {number} was preempted\n"
        else:
            client = f"127.0.0.1:{30000 + number % 9000}"
            yield f'(APIServer pid=1) INFO:     {client} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'


def memory_of(arguments: list[str]) -> float:
    """Largest resident size of the children so far, in MiB, after running one more."""
    run(arguments)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs, smaller inputs")
    quick: bool = parser.parse_args().quick
    runs = 5 if quick else 21
    paired("--help / import typer", "1.5", ours("--help"), python("import typer"), runs)
    base = python("import typer, yaml; from pydantic import BaseModel")
    paired("compile v14 / import typer, yaml, pydantic", "1.5", ours("compile", "v14"), base, runs)
    paired("the wrapper / the program it runs", "-", [str(ROOT / "scripts/gb300serve"), "--help"], ours("--help"), runs)
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
        paired("boot machine / reading the lines", "40", python(DIAGNOSE, str(log)), python(READ, str(log)), 3)
        print(f"{'':44} peak memory of everything so far {memory_of(python(DIAGNOSE, str(log))):.0f} MiB")


if __name__ == "__main__":
    main()
