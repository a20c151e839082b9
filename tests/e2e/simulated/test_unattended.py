"""`up` without a user: it returns at READY, prints events as JSON lines, and has a limit of time."""

import json
import shutil
import subprocess

import pytest

from tests.support.program import Program

FAST = ("--on", "sim", "--sim-speed", "800")


def on_port(port: int) -> tuple[str, str]:
    return ("--set", f"engine.options.port={port}")


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_wait_returns_at_ready_with_a_request_that_works(program: Program, port: int) -> None:
    up = program.run("up", "v14", *FAST, *on_port(port), "--wait")
    assert up.code == 0
    (command,) = [line.removeprefix("try it: ") for line in up.err.splitlines() if line.startswith("try it: ")]
    answer = subprocess.run(["sh", "-c", f"{command} -s"], check=True, capture_output=True, text=True, timeout=30)
    assert json.loads(answer.stdout)["choices"][0]["message"]["content"]
    again = program.run("up", "v14", *FAST, *on_port(port), "--wait")
    assert (again.code, "already serves" in again.err) == (0, True)


def test_events_as_json_lines(program: Program, port: int) -> None:
    up = program.run("up", "v14", *FAST, *on_port(port), "--wait", "--json")
    assert up.code == 0
    events = [json.loads(line) for line in up.out.splitlines()]
    phases = [event["phase"] for event in events if event["kind"] == "PhaseEntered"]
    assert (phases[0], phases[-1]) == ("starting", "serving")
    kinds = {event["kind"] for event in events}
    assert {"Launch", "StepBegan", "Estimate", "Receipt", "ReceiptsChecked", "SharedMemoryRead"} <= kinds
    (ready,) = [event for event in events if event["kind"] == "Ready"]
    assert (ready["url"], ready["model"]) == (f"http://127.0.0.1:{port}", "dsv41-flash-uva")


def test_a_failure_as_json(program: Program, port: int) -> None:
    up = program.run(
        "up", "v14", *FAST, *on_port(port), "--wait", "--json", "--set", "engine.options.cpu_offload_gb=55"
    )
    assert up.code == 8
    failed = json.loads(up.out.splitlines()[-1])
    assert (failed["kind"], failed["exit"], failed["reason"]) == ("Failed", 8, "kv-cache-too-small")
    assert failed["diagnosis"]["state"] == "failed"
    assert any("max_model_len 123264" in advice for advice in failed["diagnosis"]["advice"])


def test_a_boot_that_takes_longer_than_the_limit_keeps_booting(program: Program, port: int) -> None:
    slow = ("--on", "sim", "--sim-speed", "20")
    up = program.run("up", "v14", *slow, *on_port(port), "--wait", "--timeout", "3")
    assert up.code == 8
    assert "dsv41-vllm is not READY within 3 s; waiting for: " in up.err
    assert "dsv41-vllm is left running" in up.err
    (lane,) = program.run("status", "--json").document["lanes"]
    assert lane["state"] == "booting"


def test_wait_and_detach(program: Program) -> None:
    assert program.run("up", "v14", "--on", "sim", "--wait", "--detach").code == 2


@pytest.mark.parametrize("verb", ["status", "up"])
def test_an_engine_that_hangs_while_it_serves_is_degraded(program: Program, port: int, verb: str) -> None:
    assert program.run("up", "v14", *FAST, *on_port(port), "--wait", "--sim-fault", "wedged").code == 0
    assert program.run("status").code == 0
    words = ("status", "--check") if verb == "status" else ("up", "v14", *FAST, *on_port(port), "--wait")
    found = program.run(*words, timeout=90)
    assert found.code == 9, found.err
    why = "a short completion got no answer within 30 s: 1 requests run and 0 wait, and not one token was generated"
    assert why in found.out + found.err


def test_a_changed_release_has_an_address_of_its_own(program: Program, port: int) -> None:
    assert program.run("up", "v14", *FAST, *on_port(port), "--wait").code == 0
    refused = program.run("down", "v14", "--remove")
    assert (refused.code, "hint: remove it: gb300serve down deepseek-v4.1-flash/v14+set --remove" in refused.err) == (
        6,
        True,
    ), refused.err
    assert program.run("logs", "v14").code == 0
    assert program.run("logs", "v14+set", "--tail", "1").code == 0
    assert program.run("down", "v14+set").code == 0
    removed = program.run("down", "--remove", "--on", "sim")
    assert (removed.code, removed.err.splitlines()[-1]) == (0, "dsv41-vllm was not running; removed")
    assert program.run("down", "--remove", "--on", "sim").code == 6
