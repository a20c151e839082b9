import pytest

from gb300serve.core.values import compact_json
from gb300serve.importers.read import Choices
from gb300serve.importers.report import NotImportableError, SourceInvalidError
from tests.support.imports import read

REVISION = "df42c109f1defefcbfcedbe7d905718a12266e40"
OPTIONS = {"model": "/model", "max_num_seqs": 7}
DIGEST = "sha256:" + "0d" * 32
TEXT = f"""\
schema: jm-recipe/v1
id: dgx-station-gb300/bench-vllm
title: A bench on one GPU
status: daily-serving
owners: [x]
model: {{name: Bench, repo: org/Bench, revision: {REVISION}, quantization: fp8}}
runtime:
  engine: vllm
  engine_version: 0.33.0
  container: {{image: "vllm/vllm-openai:bench", digest: "{DIGEST}"}}
  patches:
    - {{path: patches/a.py, sha256: {"1" * 64}, purpose: x}}
launch:
  script: scripts/launch.sh
  command: |
    docker run -d --name bench --gpus all -v /srv/bench:/model:ro \\
      vllm/vllm-openai:bench --model /model --max-num-seqs 7 \\
      --privileged 1
metrics:
  - name: decode
    value: 91.50
    unit: tok/s
    workload: prose
    provenance: {{run_id: r1, method: a sweep, raw: x.json}}
verification:
  gates: {{health: {{how: curl, last_pass_utc: 2026-09-24}}}}
limits: ["one request at a time"]
updated: 2026-09-24
"""


def test_the_pins_are_laid_over_the_command() -> None:
    found = read(TEXT)
    document = found.document
    metric = document.pop("evidence")
    assert compact_json(metric) == (
        '[{"figure":"decode","value":91.50,"unit":"tok/s","workload":"prose","method":"a sweep","run":"r1"}]'
    )
    assert document == {
        "format": "gb300serve/1",
        "lane": "bench-vllm",
        "release": "imported",
        "title": "A bench on one GPU",
        "status": "draft",
        "image": {"repository": "vllm/vllm-openai", "tag": "bench", "digest": DIGEST},
        "model": {"repo": "org/Bench", "revision": REVISION, "path": "/srv/bench", "mount": "/model"},
        "container": {"name": "bench", "gpus": "all", "privileged": True},
        "engine": {
            "name": "vllm",
            "version": "0.33.0",
            "options": {"model": "/model", "max_num_seqs": 7},
            "extra_args": ["1"],
        },
        "limits": ["one request at a time"],
    }
    said = [(d.name, d.line) for d in found.diagnostics]
    assert ("docker-option-after-the-image", 17) in said
    assert ("not-taken-over", None) in said


def test_the_pinned_image_holds() -> None:
    found = read(TEXT.replace("vllm/vllm-openai:bench --model", "other/vllm:1 --model"))
    assert found.document["image"] == {"repository": "vllm/vllm-openai", "tag": "bench", "digest": DIGEST}
    message = "launch.command has the repository other/vllm, runtime.container.image vllm/vllm-openai"
    assert message in [d.message for d in found.diagnostics]


@pytest.mark.parametrize("command", ["bash scripts/launch.sh", "for x in *; do docker run i:$x; done", '""'])
def test_a_command_without_a_launch(command: str) -> None:
    head, rest = TEXT.split("  command: |\n")
    text = f"{head}  command: {command}\nmetrics:{rest.split('metrics:')[1]}"
    with pytest.raises(NotImportableError) as stopped:
        read(text)
    assert "launch.command" in stopped.value.message


def test_invalid_yaml() -> None:
    with pytest.raises(SourceInvalidError):
        read(TEXT + "a: [")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (DIGEST, "sha256:0d", ("IMP003", "runtime.container.digest sha256:0d is not valid")),
        (f', digest: "{DIGEST}"', "", ("IMP013", "the image has no digest")),
        (
            'image: "vllm/vllm-openai:bench"',
            'image: "vllm/vllm-openai:other"',
            ("IMP010", "launch.command has the tag bench, runtime.container.image other"),
        ),
        ("engine: vllm\n", "engine: sglang\n", ("IMP010", "runtime.engine is sglang, but the command starts vllm")),
        (
            "vllm-openai:bench --model",
            "vllm-openai:v0.32.0 --model",
            ("IMP010", "runtime.engine_version is 0.33.0, but the command starts 0.32.0"),
        ),
        (
            "    unit: tok/s\n",
            "",
            ("IMP003", "1 of the metrics have no number, unit, workload or method, which evidence requires"),
        ),
        (
            "quantization: fp8}",
            "draft: {repo: org/D, revision: main}}",
            ("IMP003", "model.draft.revision main is not a commit"),
        ),
    ],
)
def test_every_loss_of_a_pin_is_reported(old: str, new: str, said: tuple[str, str]) -> None:
    assert TEXT.count(old) == 1
    assert said in [(one.code, one.message) for one in read(TEXT.replace(old, new)).diagnostics]
    assert said not in [(one.code, one.message) for one in read(TEXT).diagnostics]


COMMAND = """    docker run -d --name bench --gpus all -v /srv/bench:/model:ro \\
      vllm/vllm-openai:bench --model /model --max-num-seqs 7 \\
      --privileged 1
"""
CALL = """    SEATS=18 NAME='a b' bash scripts/launch.sh   # seats; (the rest as before)
"""
SCRIPT = """#!/bin/bash
IMAGE=vllm/vllm-openai:bench
docker run -d --name bench --gpus all -v /srv/bench:/model:ro -v /opt/patches/a.py:/usr/a.py -v /opt/hook:/w \\
  "$IMAGE" --model /model --max-num-seqs $SEATS --served-model-name "$NAME" --nonsense
"""
PATCH = f"{{path: patches/a.py, sha256: {'1' * 64}, purpose: x}}"


def called(text: str = TEXT) -> str:
    assert COMMAND in text
    return text.replace(COMMAND, CALL)


def test_a_command_that_calls_a_script() -> None:
    hook = f"{PATCH}\n    - {{path: hook/b.py, sha256: {'2' * 64}, purpose: y}}"
    found = read(called().replace(PATCH, hook), {"scripts/launch.sh": SCRIPT}, "recipe.yaml")
    assert found.plan.command == (
        "--model", "/model", "--max-num-seqs", "18", "--served-model-name", "a b", "--nonsense",
    )  # fmt: skip
    assert found.document["image"]["digest"] == DIGEST
    assert found.document["model"]["revision"] == REVISION
    assert found.document["container"]["mounts"] == [
        {"source": "/opt/patches/a.py", "target": "/usr/a.py", "sha256": "1" * 64},
        {"source": "/opt/hook", "target": "/w", "sha256": {"b.py": "2" * 64}},
    ]
    assert [(d.file, d.line) for d in found.diagnostics if d.code == "IMP011"] == [("scripts/launch.sh", 4)]
    said = [d.message for d in found.diagnostics]
    assert "launch.command ends in prose, which was left out: # seats; (the rest as before)" in said
    assert not any("digest" in message for message in said)


def test_a_script_that_the_command_line_names() -> None:
    found = read(called(), {"/elsewhere/other.sh": SCRIPT}, "recipe.yaml", Choices(script="/elsewhere/other.sh"))
    assert found.plan.command[2:4] == ("--max-num-seqs", "18")


def test_a_script_that_is_not_there() -> None:
    with pytest.raises(NotImportableError) as caught:
        read(called())
    assert "launch.command calls scripts/launch.sh, which is not beside the file" in caught.value.message
    assert "--script FILE" in (caught.value.hint or "")
    assert "--container NAME" in (caught.value.hint or "")


def test_a_script_that_cannot_be_followed() -> None:
    with pytest.raises(NotImportableError) as caught:
        read(called(), {"scripts/launch.sh": "echo\ndocker run vllm/x:1 $(date)\n"})
    assert "scripts/launch.sh line 2: the output of $(date)" in caught.value.message


def test_an_image_that_was_built_on_the_machine() -> None:
    text = TEXT.replace("vllm/vllm-openai:bench", "desk-vllm:bench")
    image = read(text).document["image"]
    assert image == {"repository": "desk-vllm", "tag": "bench", "id": DIGEST}


def test_a_repository_as_its_address() -> None:
    text = TEXT.replace("repo: org/Bench", "repo: 'https://huggingface.co/org/Bench'")
    assert read(text).document["model"]["repo"] == "org/Bench"
