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

# The line of `up` at which the boot is stopped. Between the last two the tiny model takes a second: there the engine is
# held, so that its phase lasts as it does with a large one.
MOMENTS = {
    "importing": (" starting", False),
    "engine-process": ("Initializing a V1 LLM engine", False),
    "loading-weights": ("  loading-weights", True),
    "compiling": ("  compiling", True),
    "sizing-kv-cache": ("  sizing-kv-cache", True),
}
PHASES = ["starting", "loading-weights", "profiling", "compiling", "sizing-kv-cache"]


# 5 s, 15 s, and 20 s for each of the others.
@pytest.mark.parametrize("moment", MOMENTS)
def test_down_while_it_boots(engine_program: Program, engine_lane: DockerLane, docker: Docker, moment: str) -> None:
    words, held = MOMENTS[moment]
    engine_lane.write("v1", enforce_eager=moment != "compiling")
    booting = engine_program.start("up", "v1")
    said = said_until(booting, words)
    if held:
        hold(docker, engine_lane.name)
    down = engine_program.run("down", "--timeout", "3", "--reason", moment)
    said += said_at_last(booting)
    assert (booting.returncode, "was stopped while it booted, by gb300serve down" in said) == (8, True), said
    assert down.code == 0, down.err
    (found,) = engine_program.run("status", "--json", "--on", "docker").document["lanes"]
    assert (found["state"], found["container"], found["drift"]) == ("stopped", engine_lane.name, [])
    assert found["phase"] in PHASES[PHASES.index(moment if moment in PHASES else "starting") :]
    code = found["health"]["exit_code"]
    assert code in ({137} if moment == "importing" else {0, 1, 130, 137, 143})
    killed = "was killed: it did not answer the signal in time; kept"
    ended = f"ended with exit code {code}; kept"
    assert (killed if code == 137 else ended) in down.err
    (told,) = (each for each in engine_program.run("journal", "--json").document["entries"] if each["verb"] == "down")
    assert (told["result"], told["reason"]) == ("stopped", moment)
    assert docker("ps", "--quiet", "--filter", f"name={engine_lane.name}") == ""
