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
from gb300serve.engines.logs import boot_machine
machine = boot_machine()
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs, smaller inputs")
    quick: bool = parser.parse_args().quick
    runs = 5 if quick else 21
    paired("--help / import typer", "1.5", ours("--help"), python("import typer"), runs)
    base = python("import typer, yaml; from pydantic import BaseModel")
    paired("compile v14 / import typer, yaml, pydantic", "1.5", ours("compile", "v14"), base, runs)
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
        paired("boot machine / reading the lines", "40", python(DIAGNOSE, str(log)), python(READ, str(log)), 3)
        print(f"{'':44} peak memory of everything so far {memory_of(python(DIAGNOSE, str(log))):.0f} MiB")
        for name, (silent, chatty) in following(directory, 10 if quick else 30):
            print(f"{f'up {name}, reading 1,000 lines a second':44} {chatty:7.1%}  of a core; silent {silent:.1%}")
            print(f"{'':44} following costs {chatty - silent:.1%} (bound 5 %)")


if __name__ == "__main__":
    main()
