"""Boots of the real vLLM that fail, each for another reason: exit 8, the reason, and the container kept."""

import json
import socket
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.docker_recipe import DockerLane
from tests.support.program import Program
from tests.support.real_engine import PATIENCE, kill, said_at_last, said_until
from tests.support.station import Docker

pytestmark = [pytest.mark.docker, pytest.mark.engine]


@dataclass(frozen=True, slots=True)
class Failing:
    """A launch that cannot succeed, and what must be said of it."""

    reason: str
    cause: str
    phase: str = "starting"
    """Empty where it depends on the moment."""
    exit_code: int = 1
    extra_args: tuple[str, ...] = ()
    options: dict[str, object] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    container: dict[str, object] = field(default_factory=dict)


# A gap before the first range: found when the scheduler is made, after the weights and the KV cache.
SCHEDULE = {
    "method": "ngram",
    "num_speculative_tokens": 3,
    "prompt_lookup_max": 2,
    "num_speculative_tokens_per_batch_size": [[2, 4, 1]],
}
FAILING = {
    "bad-option": Failing(
        "unknown-argument",
        "unrecognized arguments: --offload-backnd uva",
        exit_code=2,
        extra_args=("--offload-backnd", "uva"),
    ),
    "bad-json": Failing(
        "invalid-json",
        """argument --speculative-config/-sc: Value {"method": "ngram",} cannot be converted""",
        exit_code=2,
        extra_args=("--speculative-config", '{"method": "ngram",}'),
    ),
    "context-exceeds-model": Failing(
        "context-exceeds-model",
        "User-specified max_model_len (8192) is greater than the derived max_model_len",
        options={"max_model_len": 8192},
    ),
    "bad-schedule": Failing(
        "bad-argument-value",
        "ValueError: The first batch-size range must start at 1",
        phase="serving",
        extra_args=("--speculative-config", json.dumps(SCHEDULE)),
    ),
    # 512 bytes a token: 2 GiB for the one request, where there is 1.
    "kv-cache-too-small": Failing(
        "kv-cache-too-small",
        "max seq len (4194304), (2.0 GiB KV cache is needed",
        phase="sizing-kv-cache",
        options={"max_model_len": 4194304},
        env={"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"},
    ),
    "host-oom-killed": Failing(
        "host-oom-killed",
        "the container was killed because host memory ran out; its log stops without an error",
        exit_code=137,
        container={"memory": "1100m"},
    ),
}  # fmt: skip


# 8 s each, 20 s for the two that fail late.
@pytest.mark.parametrize("name", FAILING)
def test_a_boot_that_fails_by_itself(
    engine_program: Program, engine_lane: DockerLane, docker: Docker, name: str
) -> None:
    failing = FAILING[name]
    engine_lane.extra_args.extend(failing.extra_args)
    engine_lane.env.update(failing.env)
    engine_lane.container.update(failing.container)
    engine_lane.write("v1", **failing.options)
    up = engine_program.run("up", "v1", timeout=PATIENCE)
    _failed(engine_program, engine_lane, docker, (up.code, up.err), failing)


KILLED = {
    "EngineCore": Failing("killed", "Engine core initialization failed"),
    # Initialization failed, or it died unexpectedly: as far as it had come.
    "Worker": Failing("killed", "Worker", phase=""),
}


# 12 s and 16 s.
@pytest.mark.parametrize("title", KILLED)
def test_a_process_that_is_killed_while_it_boots(
    engine_program: Program, engine_lane: DockerLane, docker: Docker, title: str
) -> None:
    engine_lane.write("v1")
    booting = engine_program.start("up", "v1")
    said = said_until(booting, "version 0.32.0")
    kill(docker, engine_lane.name, title)
    said += said_at_last(booting)
    _failed(engine_program, engine_lane, docker, (booting.returncode, said), KILLED[title])


# 10 s: the engine looks at the port once it has read its arguments, 6 s after preflight has found it free.
def test_a_port_that_is_taken_after_preflight_and_one_that_is_taken_before(
    engine_program: Program, engine_lane: DockerLane, docker: Docker
) -> None:
    port = int(str(engine_lane.options["port"]))
    engine_lane.write("v1")
    booting = engine_program.start("up", "v1")
    said = said_until(booting, "starting")
    with socket.create_server(("0.0.0.0", port)):
        said += said_at_last(booting)
        failing = Failing("port-in-use", "Address already in use")
        _failed(engine_program, engine_lane, docker, (booting.returncode, said), failing)
        refused = engine_program.run("up", "v1")
    assert (refused.code, f"port {port} is taken" in refused.err) == (6, True), refused.err
    assert docker("ps", "--all", "--quiet", "--filter", f"name=^/{engine_lane.name}$") == ""


def _failed(program: Program, lane: DockerLane, docker: Docker, ended: tuple[int, str], failing: Failing) -> None:
    code, err = ended
    assert code == 8, err
    last = err[err.rindex("gb300serve: ") :]
    assert failing.cause in last.splitlines()[0], err
    assert f"{failing.reason} in phase {failing.phase}" in last, err
    (kept,) = docker("ps", "--all", "--format", "{{.Names}}", "--filter", f"name={lane.name}").split()
    assert kept.startswith(f"{lane.name}-failed-")
    run = _run(program)
    assert (run["state"], run["verdict"]["reason"]) == ("failed", failing.reason)
    ending = {"tool": 8, "container": failing.exit_code, "oom_killed": failing.reason == "host-oom-killed"}
    assert run["exit"] == ending | {"kept_as": kept}
    lanes = program.run("status", "--json", "--on", "docker").document["lanes"]
    assert [(each["state"], each["container"]) for each in lanes] == [("failed", kept)]


def _run(program: Program) -> dict[str, Any]:
    (path,) = (program.home / ".local" / "state" / "gb300serve" / "runs").iterdir()
    found: dict[str, Any] = json.loads((path / "run.json").read_text())
    return found
