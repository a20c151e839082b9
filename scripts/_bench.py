"""Measures what must stay fast, as ratios to a floor that is measured beside it, run by run.

A ratio is the median over pairs (ours, floor, ours, floor, …), so that a machine whose speed drifts does not decide.
Nothing here fails: figures are for reading, tests never depend on them.
"""

import argparse
import json
import os
import resource
import signal
import socket
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
# The Engine's stream of LINES as it comes, decoded and told once each; prints seconds of CPU time a line.
DECODE = """
import struct, sys, time
from gb300serve.adapters.docker_logs import Delivered, LogDecoder
lines = open(sys.argv[1], "rb").readlines()
stamps = (f"2026-11-30T00:{n // 60000 % 60:02}:{n // 1000 % 60:02}.{n % 1000:03}000000Z " for n in range(len(lines)))
pairs = [(stamp.encode(), line) for stamp, line in zip(stamps, lines)]
framed = [struct.pack(">BxxxL", 1, len(stamp) + len(line)) + stamp + line for stamp, line in pairs]
decoder, delivered, began = LogDecoder(), Delivered(0), time.process_time()
for frame in framed:
    for entry in decoder.feed(frame):
        if delivered.is_new(entry):
            for line in entry.lines(0):
                pass
print((time.process_time() - began) / len(lines))
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


def cpu_seconds(process: int) -> float:
    """What the threads of a process have used so far (/proc/PID/task/TID/schedstat; sched-stats.rst).

    Exact, where utime of /proc/PID/stat counts whole ticks: what wakes on a timer's tick is charged all of it.
    """
    threads = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def write_lines(log: Path, per_second: int, seconds: float) -> None:
    """As a simulated container says them, a hundred times a second; none a second is silence."""
    lines = [json.dumps({"at": 30.0, "stream": "stdout", "text": line.rstrip("\n")}) + "\n" for line in log_lines(1000)]
    began, told = time.monotonic(), 0
    with log.open("a", encoding="utf-8") as file:
        while (gone := time.monotonic() - began) < seconds:
            due = int(gone * per_second)
            file.writelines(lines[number % 1000] for number in range(told, due))
            file.flush()
            told = due
            time.sleep(0.01)


def following(directory: Path, seconds: float) -> None:
    """Print the share of a core that `up` takes while a boot says 1,000 lines a second, and while it is silent."""
    environment = {**os.environ, "HOME": str(directory), "XDG_STATE_HOME": str(directory / "state")}
    words = ["--on", "sim", "--sim-speed", "1", "--set", f"engine.options.port={free_port()}"]
    watching = subprocess.Popen(
        ours("up", "v14", *words), cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while not (logs := list(directory.glob("state/gb300serve/sim/containers/*/log.jsonl"))):
            time.sleep(0.1)
        time.sleep(3)  # it has read what was there, and everything that it loads is loaded
        shares = []
        for per_second in (0, 1000):
            before = cpu_seconds(watching.pid)
            write_lines(logs[0], per_second, seconds)
            shares.append((cpu_seconds(watching.pid) - before) / seconds)
    finally:
        watching.send_signal(signal.SIGINT)
        watching.wait(timeout=30)
        down = ours("down", "--on", "sim", "--timeout", "1")
        subprocess.run(down, cwd=ROOT, env=environment, capture_output=True, check=True)
    print(
        f"{'up, following 1,000 lines a second':44} {shares[1]:7.1%}  of one core (bound 2 %); silent {shares[0]:.1%}"
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def decoding(log: Path) -> None:
    """Print what Docker's own framing of a log adds to that."""
    done = subprocess.run(python(DECODE, str(log)), check=True, capture_output=True, text=True, cwd=ROOT)
    print(f"{'Docker stream, 1,000 lines a second':44} {float(done.stdout) * 1000:7.1%}  of one core, to be added")


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
        following(directory / "station", 10 if quick else 30)
        decoding(log)


if __name__ == "__main__":
    main()
