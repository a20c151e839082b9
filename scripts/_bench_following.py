"""What `up` takes of a core while a boot says 1,000 lines a second, and while it is silent."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tests.support.checkpoints import write_whole
from tests.support.docker_recipe import DockerLane
from tests.support.free_port import free_port

ROOT = Path(__file__).resolve().parents[1]
PER_SECOND = 1000
IMAGE = "bench/engine:1"
# Silent until a file `go` appears, then the lines of `lines`, a hundred times a second, on and on.
CHATTY = """
import itertools, os, sys, time
while not os.path.exists("/bench/go"):
    time.sleep(0.1)
lines, began, told = itertools.cycle(open("/bench/lines").readlines()), time.monotonic(), 0
while True:
    due = int((time.monotonic() - began) * PER_SECOND)
    for line in itertools.islice(lines, due - told):
        sys.stdout.write(line)
        sys.stdout.flush()
    told = due
    time.sleep(0.01)
"""

Shares = tuple[float, float]


def following(directory: Path, seconds: float) -> Iterator[tuple[str, Shares]]:
    """Name, and shares of a core (silent, chatty); the Docker Engine of `scripts/station env` where there is one."""
    yield "on the simulated Station", on_sim(directory / "sim", seconds)
    if station := os.environ.get("GB300SERVE_TEST_STATION"):
        yield "on a Docker Engine", on_docker(directory / "docker", station, seconds)
    else:
        print("up on a Docker Engine: left out (see scripts/station)")


def ours(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "gb300serve", *arguments]


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


def on_sim(home: Path, seconds: float) -> Shares:
    """Lines are written where the simulated engine writes its own."""
    up = ["v14", "--on", "sim", "--sim-speed", "1", "--set", f"engine.options.port={free_port()}"]

    def chat(per_second: int) -> None:
        (log,) = home.glob("state/gb300serve/sim/containers/*/log.jsonl")
        write_lines(log, per_second, seconds)

    return measured(home, up, chat, down=["--on", "sim"])


def on_docker(home: Path, station: str, seconds: float) -> Shares:
    """A container of the simulated engine's image that runs CHATTY."""
    subprocess.run([str(ROOT / "scripts/station"), "image", "sim", IMAGE, station], check=True, capture_output=True)
    bench = home / "bench"
    bench.mkdir(parents=True)
    (bench / "lines").write_text("".join(log_lines(PER_SECOND)), encoding="utf-8")
    (bench / "chatty.py").write_text(CHATTY.replace("PER_SECOND", str(PER_SECOND)), encoding="utf-8")
    container: dict[str, object] = {
        "entrypoint": "python3",
        "mounts": [{"source": str(bench), "target": "/bench", "read_only": True}],
        "restart": "no",
    }
    lane = DockerLane(
        home, f"unix://{station}/docker.sock", IMAGE, "bench", {"model": "/model", "port": free_port()}, "0.32.0",
        write_whole(home / "models" / "bench"), {}, container, launcher=["/bench/chatty.py"],
    )  # fmt: skip
    lane.site()
    lane.write("v1")

    def chat(per_second: int) -> None:
        if per_second:
            (bench / "go").touch()
        time.sleep(seconds)

    return measured(home, ["v1"], chat, down=["--remove"], site=home / "site.yaml")


def measured(
    home: Path, up: list[str], chat: Callable[[int], None], *, down: list[str], site: Path | None = None
) -> Shares:
    """`chat` says so many lines a second for a while."""
    variables = {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "PYTHONPATH": str(ROOT / "src")}
    environment: Mapping[str, str] = {**os.environ, **variables} | ({"GB300SERVE_SITE": str(site)} if site else {})
    home.mkdir(exist_ok=True)
    watching = subprocess.Popen(
        ours("up", *up), cwd=home, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        time.sleep(6)  # everything that it loads is loaded, and it has read what was there
        return share(watching.pid, chat, 0), share(watching.pid, chat, PER_SECOND)
    finally:
        watching.send_signal(signal.SIGINT)
        watching.wait(timeout=30)
        ended = ours("down", "--timeout", "1", *down)
        subprocess.run(ended, cwd=home, env=environment, capture_output=True, check=True)


def share(process: int, chat: Callable[[int], None], per_second: int) -> float:
    """Of a core."""
    before, began = cpu_seconds(process), time.monotonic()
    chat(per_second)
    return (cpu_seconds(process) - before) / (time.monotonic() - began)


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
