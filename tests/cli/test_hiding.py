"""SGLang prints its whole `server_args`, the key that guards /v1 among them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.free_port import free_port
from tests.support.program import Program

KEY, FROM_FILE = "it's-mine 4711", "file-key-0815"
RECIPE = """\
format: gb300serve/1
lane: glm
release: guarded
title: A lane on SGLang with a key
status: draft
image: {{repository: glmf-sglang, tag: daily}}
model: {{repo: incoai/GLM-5.3-Flash-NVFP4, path: /models/GLM-5.3-Flash-NVFP4, mount: /model}}
container:
  name: glm-guarded
  gpus: all
  network: host
  secrets: {{LANE_KEY: {{env: LANE_KEY}}, OTHER: {{file: {file}}}}}
engine:
  name: sglang
  version: 0.5.23
  launcher: [python3, -m, sglang.launch_server]
  options:
    model_path: /model
    api_key: {{secret: LANE_KEY}}
    port: {port}
    served_model_name: glm-5.3-flash
    context_length: 131072
    mem_fraction_static: 0.85
"""


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    found = Program(tmp_path, {"LANE_KEY": KEY})
    yield found
    found.run("down", "--on", "sim", "--timeout", "1")


def test_no_key_is_shown_or_written_by_us(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(FROM_FILE + "\n", encoding="utf-8")
    recipe = tmp_path / "guarded.yaml"
    recipe.write_text(RECIPE.format(port=free_port(), file=file), encoding="utf-8")
    up = program.up_until_ready(str(recipe), "--on", "sim", "--sim-speed", "2000")
    assert "READY: glm-5.3-flash answers" in up.err
    program.variables.pop("LANE_KEY")  # another terminal, which does not have it
    logs = program.run("logs", "--on", "sim")
    assert "'api_key': '[secret]'" in logs.out.replace('"', "'")
    said = up.out + up.err + logs.out + logs.err
    state = tmp_path / ".local/state/gb300serve"
    runs = [each for each in (state / "runs").rglob("*") if each.is_file()]
    written = "".join(each.read_text(encoding="utf-8") for each in (*runs, state / "journal.jsonl"))
    assert "api_key" in written
    for text in (said, written):
        assert "4711" not in text
        assert FROM_FILE not in text
