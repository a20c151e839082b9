"""The real vLLM on a real Docker Engine: the whole life of a lane."""

import pytest

from tests.support.docker_recipe import DockerLane
from tests.support.program import Program
from tests.support.real_engine import PATIENCE, answer, entries, kill, lanes, said_at_last, said_until
from tests.support.station import Docker

pytestmark = [pytest.mark.docker, pytest.mark.engine]


# Three boots: 60 s. The engine is stopped with SIGTERM while it serves (replace, down), and killed while it serves.
def test_up_answer_replace_die_rollback_down(engine_program: Program, engine_lane: DockerLane, docker: Docker) -> None:
    engine_program = Program(engine_program.home, engine_program.variables)  # each command a fresh process
    engine_lane.write("v1")
    engine_lane.write("v2", max_model_len=2048)
    first = engine_program.up_until_ready("v1", timeout=PATIENCE)
    assert (first.code, "READY: tiny answers" in first.err) == (130, True), first.err
    said = answer(engine_lane)
    assert (said["model"], said["choices"][0]["finish_reason"]) == ("tiny", "length")
    assert said["usage"]["completion_tokens"] == 4
    found = lanes(engine_program)["v1"]
    assert (found["state"], found["phase"], found["on"], found["drift"]) == ("ready", "serving", "docker", [])
    assert (found["health"]["model"], found["health"]["max_model_len"]) == ("tiny", 4096)
    assert found["health"]["identity"] == "ours"
    assert "Application startup complete." in engine_program.run("logs").out
    container = docker("inspect", "--format", "{{.Id}}", engine_lane.name)

    second = engine_program.start("up", "v2", "--replace")
    said_until(second, "serving at ")
    found = lanes(engine_program)["v2"]
    assert (found["state"], found["drift"], found["health"]["max_model_len"]) == ("ready", [], 2048)
    kept = lanes(engine_program)["v1"]
    assert (kept["state"], kept["drift"], kept["health"]["exit_code"]) == ("stopped", [], 0), "SIGTERM while it serves"

    kill(docker, engine_lane.name, "EngineCore")
    died = said_at_last(second)
    assert (second.returncode, f"{engine_lane.name} died while serving" in died) == (8, True), died
    found = lanes(engine_program)["v2"]
    assert (found["state"], found["health"]["exit_code"], found["health"]["reason"]) == ("died", 0, "killed")

    back = engine_program.run("rollback", timeout=PATIENCE)
    assert back.code == 0, back.err
    assert docker("inspect", "--format", "{{.Id}}", engine_lane.name) == container
    assert answer(engine_lane)["choices"] == said["choices"], "the model is random, and always the same"
    found = lanes(engine_program)["v1"]
    assert (found["state"], found["drift"], found["health"]["max_model_len"]) == ("ready", [], 4096)

    down = engine_program.run("down")
    assert (down.code, "ended with exit code 0; kept" in down.err) == (0, True), down.err
    assert lanes(engine_program)["v1"]["state"] == "stopped"
    told = [("up", "ready"), ("up", "ready"), ("up", "died"), ("rollback", "ready"), ("down", "stopped")]
    assert entries(engine_program) == told
