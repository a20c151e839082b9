"""A lane on the other engine, end to end on the simulated Station: the recipe is the test's own."""

from pathlib import Path

from tests.support.free_port import free_port
from tests.support.program import Program

FAST = ("--on", "sim", "--sim-speed", "800")
RECIPE = """\
format: gb300serve/1
lane: glm
release: daily
title: A lane on SGLang
status: draft
image: {{repository: glmf-sglang, tag: daily}}
model: {{repo: incoai/GLM-5.3-Flash-NVFP4, path: /models/GLM-5.3-Flash-NVFP4, mount: /model}}
container: {{name: glm-daily, gpus: all, shm_size: 32g, network: host}}
engine:
  name: sglang
  version: 0.5.23
  launcher: [python3, -m, sglang.launch_server]
  options:
    model_path: /model
    port: {port}
    quantization: modelopt_fp4
    served_model_name: glm-5.3-flash
    tool_call_parser: glm47
    reasoning_parser: glm45
    context_length: {context}
    mem_fraction_static: 0.85
    max_running_requests: 16
    speculative_algorithm: NEXTN
"""


def recipe(directory: Path, context: int = 131072) -> str:
    path = directory / "glm" / "daily.yaml"
    path.parent.mkdir()
    path.write_text(RECIPE.format(port=free_port(), context=context))
    return str(path)


def test_up_status_down(program: Program, tmp_path: Path) -> None:
    file = recipe(tmp_path)
    up = program.up_until_ready(file, *FAST)
    assert "READY: glm-5.3-flash answers from glm-daily" in up.err
    assert "receipts: 1 of 1 kept" in up.err
    (lane,) = program.run("status", "--json").document["lanes"]
    assert (lane["state"], lane["phase"], lane["health"]["identity"]) == ("ready", "serving", "ours")
    assert (lane["health"]["model"], lane["health"]["max_model_len"]) == ("glm-5.3-flash", 131072)
    again = program.run("up", file, *FAST)
    assert (again.code, "already serves" in again.err) == (0, True)
    down = program.run("down")
    assert (down.code, down.err.splitlines()[-1]) == (0, "glm-daily ended with exit code 0; kept")
    (lane,) = program.run("status", "--json").document["lanes"]
    assert lane["state"] == "stopped"


def test_a_boot_that_cannot_succeed_names_its_cause_in_the_words_of_the_engine(
    program: Program, tmp_path: Path
) -> None:
    up = program.run("up", recipe(tmp_path, 9_999_999), *FAST)
    assert up.code == 8
    (cause,) = [line for line in up.err.splitlines() if line.startswith("gb300serve: ")]
    assert "context_length (9999999) is greater than the derived context_length (1048576)" in cause
    assert "set context_length to 1048576 or less" in up.err
