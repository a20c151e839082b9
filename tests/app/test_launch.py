"""What is said of the tuning set after READY."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from gb300serve.app.hosts import SIM_SPEED
from gb300serve.app.launch import SimulatedOptionError, numbered, refuse_rehearsal, tuning_lines
from gb300serve.autotune.pins import CacheVerdict
from gb300serve.autotune.sets import TuningSet
from gb300serve.lifecycle.steps import StartContainer, StopContainer
from gb300serve.simulator.station import Rehearsal
from tests.support.bench_host import BenchHost, bench_host
from tests.support.fake_docker import inspected
from tests.support.invoke import Answer, run

ID = "0123456789abcdef" * 4
OURS = {"gb300serve.lane": "bench", "gb300serve.release": "v0", "gb300serve.plan": "0" * 64}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[BenchHost]:
    with bench_host(tmp_path) as found:
        yield found


def up(bench: BenchHost, *words: str) -> Answer:
    return run("up", "v1", *words, *bench.directories, variables=bench.variables)


def test_a_machine_that_is_ready_gets_its_steps(bench: BenchHost) -> None:
    shown = up(bench, "--show-steps")
    assert (shown.code, len(shown.out.splitlines())) == (0, 3), shown.err
    assert "note" in shown.err, "what preflight notices is said as before a launch"
    assert not (bench.home / ".local").exists()


def test_a_refusal_is_the_same_when_only_the_steps_are_asked_for(bench: BenchHost) -> None:
    bench.nvidia_smi(used=200_000, processes="4711, 200000 MiB, GPU-300, python3\n")
    (bench.home / "model" / "config.json").unlink()
    shown, launched = up(bench, "--show-steps"), up(bench)
    assert (shown.code, shown.out) == (6, "")
    assert (launched.code, launched.err) == (6, shown.err)
    assert "PRE022" in shown.err
    assert "PRE051" in shown.err


def test_a_kept_container_has_the_name(bench: BenchHost) -> None:
    bench.docker.containers = [inspected(ID, "bench", running=False, labels=OURS, gpus=False)]
    shown = up(bench, "--show-steps")
    assert (shown.code, len(shown.out.splitlines())) == (0, 4), shown.err
    assert "; bench/v0, stopped 2026-11-29 11:00:00Z with exit code 0, is kept" in shown.out.splitlines()[0]


def test_a_port_that_is_taken(bench: BenchHost) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", bench.port))
        listener.listen()
        shown, launched = up(bench, "--show-steps"), up(bench)
    assert (shown.code, launched.code, shown.err) == (6, 6, launched.err)


def test_a_file_in_the_place_of_the_runs(bench: BenchHost) -> None:
    state = bench.home / ".local" / "state" / "gb300serve"
    state.mkdir(parents=True)
    (state / "runs").write_text("")
    shown, launched = up(bench, "--show-steps"), up(bench)
    assert (shown.code, launched.code, shown.err) == (6, 6, launched.err)
    assert "runs cannot be written: it is a file; nothing was launched" in shown.err


def test_a_directory_in_the_place_of_the_journal(bench: BenchHost) -> None:
    journal = bench.home / ".local" / "state" / "gb300serve" / "journal.jsonl"
    journal.mkdir(parents=True)
    shown, launched = up(bench, "--show-steps"), up(bench)
    assert (shown.code, launched.code, shown.err) == (6, 6, launched.err)
    assert f"{journal} cannot be written: Is a directory; nothing was launched" in shown.err


def test_steps_are_numbered() -> None:
    stop, start = StopContainer("id1", "one", 30.0), StartContainer("two", "two")
    assert numbered((stop, start)) == (f"1. {stop.describe()}", f"2. {start.describe()}")


GPU_LANE = {"gpu-lane": "1"}
"""How one owner marks the container that holds the GPU, whatever options it was started with."""


@pytest.mark.parametrize("words", [(), ("--replace",), ("--show-steps",)])
def test_a_stranger_on_the_gpu(bench: BenchHost, words: tuple[str, ...]) -> None:
    bench.nvidia_smi(used=200_000, processes="4711, 200000 MiB, GPU-300, python3\n")
    bench.docker.containers = [inspected(ID, "someone", labels=GPU_LANE, gpus=False)]
    refused = up(bench, *words)
    assert (refused.code, refused.err.splitlines()[-2:]) == (
        6,
        [
            "gb300serve: a container that gb300serve did not create uses the GPU: someone (image lmsysorg/sglang:dev)"
            ", running since 2026-11-29 10:00:00Z; 195.3 GiB of the GPU's memory are in use, and which process is its "
            "own cannot be told; it is never stopped for you",
            "  hint: docker stop someone",
        ],
    )
    assert not [path for path in bench.docker.asked if path.endswith(("/create", "/stop", "/rename"))]


def test_a_stranger_on_the_gpu_whose_memory_cannot_be_read(bench: BenchHost) -> None:
    failing = bench.home / "bin" / "nvidia-smi"
    failing.write_text("#!/bin/sh\necho 'Insufficient Permissions'\nexit 4\n")
    why = "nvidia-smi failed: Insufficient Permissions"
    may = up(bench, "--show-steps")
    assert (may.code, f"not checked: whether another process uses the GPU ({why})" in may.err) == (0, True)
    bench.docker.containers = [inspected(ID, "someone", labels=GPU_LANE, gpus=False)]
    refused = up(bench)
    assert refused.code == 6
    assert f"how much of the GPU's memory it holds was not checked ({why}); it is never stopped" in refused.err


def test_status_lists_the_stranger_with_the_same_facts(bench: BenchHost) -> None:
    bench.nvidia_smi(used=200_000)
    bench.docker.containers = [inspected(ID, "someone", labels=GPU_LANE, gpus=False)]
    told = run("status", *bench.directories, variables=bench.variables)
    assert told.code == 0, told.err
    assert "someone: gb300serve did not create it (image lmsysorg/sglang:dev); 195.3 GiB of the GPU's" in told.out
    (lane,) = run("status", "--json", *bench.directories, variables=bench.variables).document["lanes"]
    assert (lane["state"], lane["container"], lane["image"], lane["since"]) == (
        "foreign", "someone", "lmsysorg/sglang:dev", "2026-11-29T10:00:00Z",
    )  # fmt: skip


@pytest.mark.parametrize("words", [("--sim-fault", "gpu-oom"), ("--sim-speed", "800")])
def test_a_rehearsal_is_never_a_real_launch(words: tuple[str, str]) -> None:
    answer = run("up", "v14", *words)
    said = f"gb300serve: {' '.join(words)} works on the simulated Station only, but this is a real launch\n"
    assert (answer.code, answer.err) == (2, f"{said}  hint: add --on sim\n")


def test_a_return_to_a_real_release_is_no_rehearsal() -> None:
    answer = run("rollback", "--on", "docker", "--sim-fault", "gpu-oom")
    assert (answer.code, answer.err.splitlines()[-1]) == (2, "  hint: add --on sim")


def test_the_simulated_station_takes_both() -> None:
    refuse_rehearsal(Rehearsal(800.0, "gpu-oom"), "sim")
    refuse_rehearsal(Rehearsal(SIM_SPEED), "docker")
    with pytest.raises(SimulatedOptionError):
        refuse_rehearsal(Rehearsal(800.0), "docker")


FOUND = TuningSet("0.6.18", "103a", "9ac7b387" * 8, "autotune_configs.json")


@pytest.mark.parametrize(
    ("verified", "lines"),
    [
        (CacheVerdict("unknown", ("/c/x belongs to another user",), FOUND), [("/c/x belongs to another user", "dim")]),
        (CacheVerdict("missing", ("no set 9ac7b387 is there",)), [("no set 9ac7b387 is there", "warning")]),
    ],
)
def test_what_is_said(verified: CacheVerdict, lines: list[tuple[str, str]]) -> None:
    wanted = [(f"tuning cache, for the next boot: {text}", style) for text, style in lines]
    assert list(tuning_lines(verified)) == wanted
