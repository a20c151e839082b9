"""The main job, end to end: up, status, logs, down as programs of their own, on the simulated Station."""

import json
import os
import subprocess
import time
from urllib.request import urlopen

import pytest

from tests.support.program import ROOT, Program

FAST = ("--on", "sim", "--sim-speed", "800")


def on_port(port: int) -> tuple[str, str]:
    return ("--set", f"engine.options.port={port}")


def test_up_status_logs_down(fresh_program: Program, port: int) -> None:
    program = fresh_program
    up = program.up_until_ready("v14", *FAST, *on_port(port))
    assert up.code == 130
    phases = [line.split("s  ", 1)[1].split()[0] for line in up.err.splitlines() if "(expected" in line]
    assert phases[0] == "starting"
    assert phases[-1] == "serving"
    assert "READY: dsv41-flash-uva answers from dsv41-vllm" in up.err
    pinned = "[simulated]           pinned host memory: 380.00 GiB (RssShmem of the engine); fit expects 380.00 GiB"
    assert pinned in up.err.splitlines()
    assert all(line.startswith(("[simulated]", "simulated")) for line in up.err.splitlines()[:5])
    assert up.err.splitlines()[-1] == "dsv41-vllm keeps running; stop it with gb300serve down v14 --on sim"

    (lane,) = program.run("status", "--json").document["lanes"]
    assert (lane["lane"], lane["release"], lane["on"], lane["state"]) == (
        "deepseek-v4.1-flash", "v14+set", "sim", "ready",
    )  # fmt: skip
    with urlopen(f"http://127.0.0.1:{port}/v1/models") as answer:
        assert json.load(answer)["data"][0]["id"] == "dsv41-flash-uva"
    logs = program.run("logs", "--tail", "5")
    assert (logs.code, len(logs.out.splitlines())) == (0, 5)

    again = program.run("up", "v14", *FAST, *on_port(port))
    assert again.code == 0
    assert "already serves" in again.err
    other = program.run("up", "v13", *FAST, *on_port(port))
    assert other.code == 6
    assert "deepseek-v4.1-flash/v14" in other.err

    down = program.run("down")
    assert (down.code, down.err.splitlines()[-1]) == (0, "dsv41-vllm ended with exit code 0; kept")
    (lane,) = program.run("status", "--json").document["lanes"]
    assert lane["state"] == "stopped"


def test_a_boot_that_cannot_succeed_names_its_cause_first(program: Program, port: int) -> None:
    up = program.run("up", "v14", *FAST, *on_port(port), "--set", "engine.options.cpu_offload_gb=55")
    assert up.code == 8
    (cause,) = [line for line in up.err.splitlines() if line.startswith("gb300serve: ")]
    assert "(2.2 GiB KV cache is needed, which is larger than the available KV cache memory (0.65 GiB)" in cause
    assert "max_model_len 123264 would fit" in up.err
    assert up.err.count("(2.2 GiB KV cache is needed") == 1
    (lane,) = program.run("status", "--on", "sim", "--json").document["lanes"]
    assert lane["state"] == "failed"
    assert lane["container"].startswith("dsv41-vllm-failed-")
    again = program.run("up", "v14", *FAST, *on_port(port), "--set", "engine.options.cpu_offload_gb=54")
    assert again.code == 8
    failed = {each["container"] for each in program.run("status", "--on", "sim", "--json").document["lanes"]}
    down = program.run("down", "v14+set", "--on", "sim", "--remove")
    assert (down.code, len(failed)) == (0, 2), down.err
    assert all(name in down.err for name in failed)
    assert program.run("status", "--on", "sim", "--json").document["lanes"] == []


def test_two_stations_on_one_port_never_take_each_others_engine_for_their_own(program: Program, port: int) -> None:
    """Both boot before either listens: one serves, the other fails, whichever is first."""
    for name in ("one", "two"):
        (program.home / f"{name}.yaml").write_text(f"format: gb300serve.site/1\nstate: {program.home / name}\n")
    launches = [
        subprocess.Popen(
            program.command("up", "v14", "--on", "sim", "--sim-speed", "50", *on_port(port), "--site", f"{name}.yaml"),
            env=program.environment, cwd=program.home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for name in ("one", "two")
    ]  # fmt: skip
    try:
        until = time.monotonic() + 120
        while all(launch.poll() is None for launch in launches) and time.monotonic() < until:
            time.sleep(0.1)
        (failed,) = [launch for launch in launches if launch.poll() is not None]
        said = failed.communicate()[1]
        assert failed.returncode == 8, said
        assert "READY: " not in said
        states = [
            program.run("status", "--on", "sim", "--json", "--site", f"{name}.yaml").document["lanes"][0]["state"]
            for name in ("one", "two")
        ]
        assert sorted(states)[0] == "failed"
        assert states[launches.index(failed)] == "failed"
    finally:
        for name, launch in zip(("one", "two"), launches, strict=True):
            launch.kill()
            launch.communicate()
            program.run("down", "--on", "sim", "--timeout", "0", "--site", f"{name}.yaml")


def test_a_launch_whose_reader_has_gone_is_carried_through(program: Program, port: int) -> None:
    assert program.run("up", "v14", *FAST, *on_port(port), "--detach").code == 0
    reading, writing = os.pipe()
    os.close(reading)
    words = program.command("up", "v13", *FAST, *on_port(port), "--replace", "--detach")
    done = subprocess.run(words, env=program.environment, cwd=program.home, stderr=writing, check=False, timeout=120)
    os.close(writing)
    assert done.returncode == 0
    lanes = program.run("status", "--json").document["lanes"]
    assert (lanes[0]["release"], lanes[0]["container"]) == ("v13+set", "dsv41-vllm")


def test_of_a_lane_that_boots_nobody_expects_an_answer(program: Program, port: int) -> None:
    assert program.run("up", "v14", "--on", "sim", "--sim-speed", "1", *on_port(port), "--detach").code == 0
    shown = program.run("status", "--on", "sim")
    heading, lane = shown.out.splitlines()
    assert heading.startswith("LANE ")
    assert lane.split()[2:5] == ["sim", "booting", "starting"]
    (found,) = program.run("status", "--on", "sim", "--json").document["lanes"]
    assert "does not respond" in found["health"]["why"]


def test_detached_from_a_lane_that_runs(program: Program, port: int) -> None:
    assert program.run("up", "v14", *FAST, *on_port(port), "--detach").code == 0
    again = program.run("up", "v14", *FAST, *on_port(port), "--detach")
    assert again.code == 0
    assert again.err.splitlines()[-1].startswith(f"v14 already runs: dsv41-vllm, at http://127.0.0.1:{port}, since ")
    assert len(program.run("journal", "--json").document["entries"]) == 1


def test_hints_lead_to_the_same_site(program: Program, port: int) -> None:
    (program.home / "my site.yaml").write_text(f"format: gb300serve.site/1\nstate: {program.home / 'other'}\n")
    site = ("--site", "my site.yaml")
    up = program.run("up", "v14", *FAST, *on_port(port), *site, "--detach")
    words = f"v14 --on sim --site 'my site.yaml' --set engine.options.port={port}"
    assert up.err.splitlines()[-1] == f"dsv41-vllm boots; watch it with gb300serve up {words}"
    assert program.run("down", "v14", "--on", "sim").code == 6
    assert program.run("down", "v14", "--on", "sim", *site).code == 0


def test_nothing_is_done_to_show_the_steps(program: Program, port: int) -> None:
    shown = program.run("up", "v14", "--on", "sim", "--show-steps", *on_port(port))
    assert (shown.code, len(shown.out.splitlines())) == (0, 3)
    assert program.run("status", "--on", "sim", "--json").document["lanes"] == []


@pytest.mark.parametrize("change", ["cpu_offload_gb=55", "cpu_offload_params=[experts.w13_weight]"])
def test_up_advises_as_diagnose_does(program: Program, port: int, change: str) -> None:
    failed = program.run("up", "v14", *FAST, *on_port(port), "--set", f"engine.options.{change}")
    assert failed.code == 8, failed.err
    (log,) = (program.home / ".local/state/gb300serve/runs").glob("*/log.txt")
    advice = program.run("diagnose", str(log), "--json").document["advice"]
    assert any("cpu_offload_gb" in each and "fits" in each for each in advice), advice
    assert [each for each in advice if each in failed.err] == advice


EVERY = sorted(f"{path.parent.name}/{path.stem}" for path in (ROOT / "recipes").glob("*/*.yaml") if path.stem != "lane")
SECRETS = {"VLLM_API_KEY": "swordfish-0123456789", "SGLANG_API_KEY": "swordfish-0123456789"}


@pytest.mark.parametrize("ref", EVERY)
def test_every_shipped_release_comes_up(program: Program, port: int, ref: str) -> None:
    program.variables |= SECRETS
    up = program.up_until_ready(ref, *FAST, *on_port(port))
    assert (up.code, "READY: " in up.err) == (130, True), up.err
    (lane,) = program.run("status", "--json", "--on", "sim").document["lanes"]
    assert (f"{lane['lane']}/{lane['release']}", lane["state"], lane["drift"]) == (f"{ref}+set", "ready", [])
    log = program.home / "boot.log"
    log.write_text(program.run("logs", ref, "--on", "sim").out)
    diagnosed = program.run("diagnose", str(log), "--json")
    assert (diagnosed.code, diagnosed.document["state"]) == (0, "ready"), diagnosed.out
    runs = program.home / ".local/state/gb300serve/runs"
    written = {path.name: path.read_text() for path in runs.rglob("*") if path.is_file()}
    assert {"log.txt", "plan.json", "run.json"} <= set(written)
    assert [name for name, text in written.items() if "swordfish" in text] == []
    assert "swordfish" not in up.err + log.read_text()
