"""Operations as programs of their own, on the simulated Station: interrupted, replaced, rolled back, killed, raced."""

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import descendants, started_with
from tests.support.program import Program, Result, wait_for_end

FAST = ("--on", "sim", "--sim-speed", "800")
SLOW = ("--on", "sim", "--sim-speed", "50")


def up(program: Program, release: str, port: int, *words: str, speed: tuple[str, ...] = FAST) -> Result:
    ended = program.up_until_ready(release, *speed, "--set", f"engine.options.port={port}", *words)
    assert ended.code in {0, 130}, ended.err
    return ended


def state(program: Program) -> Path:
    return program.home / ".local" / "state" / "gb300serve"


def runs(program: Program) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((state(program) / "runs").glob("*/run.json"))]


def entries(program: Program) -> list[tuple[str, str]]:
    told = program.run("journal", "--json").document
    assert told["torn"] == []
    return [(each["verb"], each["result"]) for each in told["entries"]]


def lanes(program: Program) -> dict[str, tuple[str, str]]:
    shown = program.run("status", "--on", "sim", "--json")
    assert shown.code == 0, shown.err
    found = shown.document["lanes"]
    assert [each["drift"] for each in found] == [[]] * len(found)
    return {each["release"]: (each["container"], each["state"]) for each in found}


def interrupted(process: subprocess.Popen[str], phase: str, again_after: float | None) -> Result:
    """How it ended after Ctrl-C to the whole group, as soon as the phase is shown."""
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if phase in line:
            break
    os.killpg(process.pid, signal.SIGINT)
    if again_after is not None:
        time.sleep(again_after)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
    out, err = wait_for_end(process, 30)
    return Result(process.returncode, out, "".join(said) + err)


@pytest.mark.parametrize("again_after", [None, 0.0, 0.1])
def test_ctrl_c_in_the_middle_of_a_boot(program: Program, port: int, again_after: float | None) -> None:
    process = program.start("up", "v14", *SLOW, "--set", f"engine.options.port={port}", group=True)
    ended = interrupted(process, "loading-weights", again_after)
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    assert ended.err.splitlines()[-1] == (
        "gb300serve: interrupted; dsv41-vllm keeps running; "
        f"watch it again: gb300serve up v14 --on sim --set engine.options.port={port}; "
        "stop it: gb300serve down v14 --on sim"
    )
    (run,) = runs(program)
    assert (run["state"], run["exit"], run["log"]["complete"]) == ("interrupted", {"tool": 130}, True)
    host = json.loads(next((state(program) / "runs").glob("*/host.json")).read_text())
    assert (host["schema"], host["recipe"], host["on"]) == ("gb300serve.doctor/1", "deepseek-v4.1-flash/v14+set", "sim")
    assert [gpu["name"] for gpu in host["facts"]["gpus"]["value"]][-1] == "NVIDIA GB300"
    log = next((state(program) / "runs").glob("*/log.txt")).read_text()
    assert "Starting to load model" in log
    assert log.endswith("\n")
    assert lanes(program)["v14+set"][1] == "booting"
    again = up(program, "v14", port)
    assert again.code == 130
    assert len(program.run("status", "--on", "sim", "--json").document["lanes"]) == 1
    assert entries(program) == [("up", "interrupted"), ("up", "ready")]


def test_a_kept_container_has_the_name(program: Program, port: int) -> None:
    up(program, "v13", port)
    assert program.run("down").code == 0
    before = lanes(program), entries(program), runs(program)
    words = ("v14", *FAST, "--set", f"engine.options.port={port}")
    shown = program.run("up", *words, "--show-steps")
    assert (shown.code, lanes(program), entries(program), runs(program)) == (0, *before)
    kept = shown.out.splitlines()[0]
    assert kept.startswith("1. rename dsv41-vllm to dsv41-vllm-kept-v13-set-")
    assert "; deepseek-v4.1-flash/v13+set, stopped 20" in kept
    assert kept.endswith("Z with exit code 0, is kept, and rollback returns to it")
    done = program.run("up", *words, "--wait")
    assert (done.code, kept.split("; ")[1] in done.err) == (0, True)
    assert {release: state for release, (_, state, *_) in lanes(program).items()} == {
        "v14+set": "ready", "v13+set": "stopped",
    }  # fmt: skip


def test_the_port_is_taken(program: Program) -> None:
    for address in ("0.0.0.0", "127.0.0.1", "::"):
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as listener:
            listener.bind((address, 0))
            listener.listen()
            port = listener.getsockname()[1]
            words = ("v14", "--on", "sim", "--set", f"engine.options.port={port}")
            refused, found = program.run("up", *words), program.run("doctor", *words)
        assert (refused.code, found.code) == (6, 6)
        finding = f"port {port} is taken: "
        assert f"gb300serve: {finding}" in refused.err
        assert f"process {os.getpid()} listens on {address}" in refused.err
        assert finding in found.out
    assert not (state(program) / "sim" / "containers").exists()


def test_a_whole_story(program: Program, port: int) -> None:
    """v13 serves, v14 replaces it, back to v13, back again; each change is told once."""
    up(program, "v13", port)
    up(program, "v14", port, "--replace", "--reason", "faster")
    shown = program.run("rollback", "--show-steps")
    assert (shown.code, lanes(program)["v14+set"]) == (0, ("dsv41-vllm", "ready"))
    assert "back to deepseek-v4.1-flash/v13+set" in shown.out
    assert "start dsv41-vllm (the kept container)" in shown.out
    back = program.run("rollback", "--reason", "worse", "--sim-speed", "800")
    assert back.code == 0, back.err
    assert back.err.index("back to deepseek-v4.1-flash/v13+set") < back.err.index("1. stop dsv41-vllm")
    found = lanes(program)
    assert found["v13+set"] == ("dsv41-vllm", "ready")
    assert found["v14+set"][0].startswith("dsv41-vllm-kept-v14-set-")
    again = program.run("rollback", "deepseek-v4.1-flash")
    assert (again.code, lanes(program)["v14+set"]) == (0, ("dsv41-vllm", "ready")), again.err
    assert program.run("down").code == 0
    assert entries(program) == [
        ("up", "ready"), ("up", "ready"), ("rollback", "ready"), ("rollback", "ready"), ("down", "stopped"),
    ]  # fmt: skip
    told = program.run("journal", "--json", "-n", "4").document["entries"]
    assert [each["reason"] for each in told] == ["faster", "worse", None, None]
    assert [[one["release"].rpartition("/")[2] for one in each["to"]] for each in told] == [
        ["v14+set"], ["v13+set"], ["v14+set"], [],
    ]  # fmt: skip
    assert all(each["at"].endswith("Z") for each in told)
    text = program.run("journal", "-n", "1").out
    assert "down on the simulated Station: stopped, requested by " in text
    assert "deepseek-v4.1-flash/v14+set (dsv41-vllm) → nothing" in text


def test_a_rollback_that_fails_puts_back_what_served(program: Program, port: int) -> None:
    up(program, "v13", port)
    up(program, "v14", port, "--replace")
    before = lanes(program)
    back = program.run("rollback", "--sim-fault", "host-oom", "--sim-speed", "800")
    assert back.code == 8, back.err
    assert "dsv41-vllm was put back and boots again" in back.err
    assert {release: name for release, (name, _) in lanes(program).items()} == {
        release: name for release, (name, _) in before.items()
    }
    assert entries(program)[-1] == ("rollback", "failed")
    taken_up = up(program, "v14", port)
    assert taken_up.code in {0, 130}, taken_up.err
    assert lanes(program)["v14+set"] == ("dsv41-vllm", "ready")


def test_nothing_to_roll_back_to(program: Program, port: int) -> None:
    nothing = program.run("rollback", "--on", "sim")
    assert (nothing.code, "no lane is running, and no run is recorded" in nothing.err) == (6, True)
    up(program, "v14", port)
    only = program.run("rollback")
    assert (only.code, "there is nothing to roll back to" in only.err) == (6, True)
    assert lanes(program)["v14+set"] == ("dsv41-vllm", "ready")


def test_two_launches_at_the_same_moment_make_one_container(program: Program, port: int) -> None:
    words = ("up", "v14", *FAST, "--set", f"engine.options.port={port}", "--detach")
    both = [program.start(*words) for _ in range(2)]
    ended = [(wait_for_end(each, 60), each.returncode) for each in both]
    assert [code for _, code in ended] == [0, 0], ended
    assert len(program.run("status", "--on", "sim", "--json").document["lanes"]) == 1


def test_down_from_another_terminal_ends_a_boot(program: Program, port: int) -> None:
    """Also one that replaced another release: that one is not brought back against the wish of who stopped it."""
    up(program, "v13", port)
    booting = program.start("up", "v14", *SLOW, "--set", f"engine.options.port={port}", "--replace")
    assert booting.stderr is not None
    for line in booting.stderr:
        if "loading-weights" in line:
            break
    down = program.run("down", "--on", "sim")
    assert down.code == 0, down.err
    _, err = wait_for_end(booting, 30)
    assert (booting.returncode, "was stopped during its boot by gb300serve down" in err) == (8, True), err
    assert {name for _, name in lanes(program).values()} == {"stopped"}
    assert sorted(entries(program)) == [("down", "stopped"), ("up", "ready"), ("up", "stopped")]


def test_a_launch_that_was_killed_gets_its_entry_from_the_next_command(program: Program, port: int) -> None:
    killed = program.start("up", "v14", *SLOW, "--set", f"engine.options.port={port}")
    assert killed.stderr is not None
    for line in killed.stderr:
        if "loading-weights" in line:
            break
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert [run["state"] for run in runs(program)] == ["booting"]
    assert lanes(program)["v14+set"][1] == "booting"
    up(program, "v14", port)
    assert entries(program) == [("up", "cut-short"), ("up", "ready")]
    assert [run["state"] for run in runs(program)] == ["cut-short", "ready"]


def test_a_launch_that_was_killed_between_its_record_and_the_journal(program: Program, port: int) -> None:
    up(program, "v14", port)
    journal = state(program) / "journal.jsonl"
    journal.unlink()
    assert program.run("down", "--on", "sim").code == 0
    assert entries(program) == [("up", "ready"), ("down", "stopped")]
    told = program.run("journal", "--json").document["entries"][0]
    assert told["said"] == (
        "deepseek-v4.1-flash/v14+set became READY; its command was killed before it could record the result"
    )
    assert [run["state"] for run in runs(program)] == ["ready"]


def test_a_file_in_the_place_of_the_runs(program: Program, port: int) -> None:
    state(program).mkdir(parents=True)
    (state(program) / "runs").write_text("")
    refused = program.run("up", "v14", *FAST, "--set", f"engine.options.port={port}")
    assert refused.code == 6
    assert f"{state(program)}/runs cannot be written: it is a file; nothing was launched" in refused.err
    assert not (state(program) / "sim" / "containers").exists()
    assert program.run("status", "--on", "sim").code == 0
    assert program.run("journal").out == "no entries\n"


def test_looking_writes_nothing(program: Program) -> None:
    program.run("status")
    program.run("journal")
    program.run("up", "v14", "--on", "sim", "--show-steps")
    assert not state(program).exists()


def test_what_earlier_runs_took_is_expected(program: Program, port: int) -> None:
    up(program, "v14", port)
    program.run("down")
    kept = up(program, "v14", port)
    assert "(expected 21 s)" in kept.err, "a kept container was never started before: the recipe's figures"
    program.run("down")
    first = {each["name"]: each["seconds"] for each in runs(program)[-1]["phases"]}
    third = up(program, "v14", port)
    assert f"loading-weights  (expected {first['loading-weights']:.0f} s)" in third.err


def test_a_detached_launch_that_served_can_be_returned_to(program: Program, port: int) -> None:
    words = ("--set", f"engine.options.port={port}")
    assert program.run("up", "v13", *FAST, *words, "--detach").code == 0
    until = time.monotonic() + 60
    while program.run("status", "--json").document["lanes"][0]["state"] != "ready":
        assert time.monotonic() < until
    assert "READY" in program.up_until_ready("v14", *FAST, *words, "--replace").err
    back = program.run("rollback")
    assert (back.code, "back to deepseek-v4.1-flash/v13+set" in back.err) == (0, True), back.err
    (lane, kept) = program.run("status", "--json").document["lanes"]
    assert (lane["release"], lane["state"]) == ("v13+set", "ready")
    assert (kept["release"], kept["state"]) == ("v14+set", "stopped")


def test_a_detached_launch_that_never_served_is_no_way_back(program: Program, port: int) -> None:
    words = ("--set", f"engine.options.port={port}")
    assert program.run("up", "v13", "--on", "sim", "--sim-speed", "10", *words, "--detach").code == 0
    while "Resolved architecture" not in program.run("logs").out:  # before it has imported, it ignores SIGTERM
        pass
    assert "READY" in program.up_until_ready("v14", *FAST, *words, "--replace").err
    back = program.run("rollback")
    assert (back.code, "there is nothing to roll back to" in back.err) == (6, True), back.err


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="left out: /proc has no processes")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_that_was_not_waited_for(program: Program, port: int, number: signal.Signals) -> None:
    assert program.run("up", "v14", *SLOW, "--set", f"engine.options.port={port}", "--detach").code == 0
    (shim,) = started_with(f"{state(program)}/sim/containers/")
    (engine,) = descendants(shim)
    os.kill(engine, signal.SIGSTOP)  # it takes no SIGTERM in the 30 s that `down` would wait
    down = program.start("down", "--on", "sim")
    assert down.stderr is not None
    assert down.stderr.readline() == "[simulated] stop dsv41-vllm (SIGKILL after 30 s); the container is kept\n"
    down.send_signal(number)
    _, err = wait_for_end(down, 30)
    assert (down.returncode, err.splitlines()) == (130, [
        "gb300serve: interrupted; dsv41-vllm received the stop signal, but down did not wait for its end",
        "  hint: see what runs: gb300serve status --on sim",
        "        wait for its end: gb300serve down deepseek-v4.1-flash/v14 --on sim",
    ])  # fmt: skip
    entry = program.run("journal", "--json").document["entries"][-1]
    assert (entry["verb"], entry["result"], entry["to"]) == ("down", "interrupted", [])
    assert program.run("down", "--on", "sim", "--timeout", "0").code == 0
    (lane,) = program.run("status", "--json").document["lanes"]
    assert (lane["state"], lane["drift"]) == ("stopped", [])
