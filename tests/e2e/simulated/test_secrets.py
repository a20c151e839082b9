"""No secret is shown or written, not even by SGLang, which prints its whole `server_args` with the key of /v1."""

from pathlib import Path

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


def test_no_key_is_shown_or_written_by_us(program: Program, port: int, tmp_path: Path) -> None:
    program.variables["LANE_KEY"] = KEY
    file = tmp_path / "key"
    file.write_text(FROM_FILE + "\n", encoding="utf-8")
    recipe = tmp_path / "guarded.yaml"
    recipe.write_text(RECIPE.format(port=port, file=file), encoding="utf-8")
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


def test_secrets_are_written_nowhere(program: Program, port: int) -> None:
    secret = "tomato-4711-xyz"
    program.variables["KEY"] = secret
    words = ("--set", 'container.secrets={"KEY": {"env": "KEY"}}', "--set", 'engine.options.api_key={"secret": "KEY"}')
    on = ("--on", "sim", "--sim-speed", "800", "--set", f"engine.options.port={port}")
    launched = program.up_until_ready("v14", *on, *words)
    assert launched.code == 130, launched.err
    written = [path for path in program.home.rglob("*") if path.is_file()]
    assert [path.name for path in written if secret in path.read_text(errors="replace")] == []


def test_a_rehearsal_needs_no_secret(program: Program, port: int, tmp_path: Path) -> None:
    recipe = tmp_path / "guarded.yaml"
    recipe.write_text(RECIPE.format(port=port, file=tmp_path / "absent"), encoding="utf-8")
    up = program.run("up", str(recipe), "--on", "sim", "--sim-speed", "2000", "--wait")
    assert (up.code, "this rehearsal uses stand-ins for its secrets: LANE_KEY, OTHER" in up.err) == (0, True), up.err
    assert '-H "Authorization: Bearer simulated-LANE_KEY"' in up.err
    assert program.run("probe", "--only", "arithmetic").code == 0
    assert program.run("doctor", str(recipe), "--on", "sim").code == 0
