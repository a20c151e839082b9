"""`down` in every phase of the real vLLM's boot: waited for, then killed, and no failure.

vLLM ignores SIGTERM while Python imports it (the first process of a container has no handler then), and may hang on it
later.
"""

import pytest

from tests.support.docker_recipe import DockerLane
from tests.support.program import Program
from tests.support.real_engine import hold, said_at_last, said_until
from tests.support.station import Docker

pytestmark = [pytest.mark.docker, pytest.mark.engine]

# The line of `up` at which the boot is stopped, and the line of the log at which the engine is held, so that the phase
# of the tiny model lasts as that of a large one does.
MOMENTS = {
    "importing": (" starting", ""),
    "engine-process": ("Initializing a V1 LLM engine", ""),
    "loading-weights": ("  loading-weights", "Starting to load model"),
    "compiling": ("  compiling", "Warming up model for the compilation"),
    "sizing-kv-cache": ("  sizing-kv-cache", "Explicitly set ("),
}
PHASES = ["starting", "loading-weights", "profiling", "compiling", "sizing-kv-cache"]


# 5 s, 15 s, and 20 s for each of the others.
@pytest.mark.parametrize("moment", MOMENTS)
def test_down_while_it_boots(engine_program: Program, engine_lane: DockerLane, docker: Docker, moment: str) -> None:
    words, held_at = MOMENTS[moment]
    engine_lane.write("v1", enforce_eager=moment != "compiling")
    booting = engine_program.start("up", "v1")
    said = said_until(booting, " starting")
    if held_at:
        hold(docker, engine_lane.name, held_at)
    if moment != "importing":
        said += said_until(booting, words)
    down = engine_program.run("down", "--timeout", "3", "--reason", moment)
    said += said_at_last(booting)
    assert (booting.returncode, "was stopped during its boot by gb300serve down" in said) == (8, True), said
    assert down.code == 0, down.err
    (found,) = engine_program.run("status", "--json", "--on", "docker").document["lanes"]
    assert (found["state"], found["container"], found["drift"]) == ("stopped", engine_lane.name, [])
    assert found["phase"] in PHASES[PHASES.index(moment if moment in PHASES else "starting") :]
    code = found["health"]["exit_code"]
    assert code in ({137} if moment == "importing" else {0, 1, 130, 137, 143})
    killed = "was killed: it ignored the stop signal; kept"
    ended = f"ended with exit code {code}; kept"
    assert (killed if code == 137 else ended) in down.err
    (told,) = (each for each in engine_program.run("journal", "--json").document["entries"] if each["verb"] == "down")
    assert (told["result"], told["reason"]) == ("stopped", moment)
    assert docker("ps", "--quiet", "--filter", f"name={engine_lane.name}") == ""
