"""Pastes as they come: launches cut, doubled, spliced, strewn with what shells and editors treat specially."""

import json
import random

from gb300serve.core.errors import CompileError, RecipeError
from gb300serve.recipe.write import to_yaml
from gb300serve.render.docker_run import plan_document
from tests.support.fuzz_judges import SECONDS, BrokenError, Failure, judged
from tests.support.imports import read
from tests.support.shell_scripts import script

SECRETS = ("hf_Qw3rTy7uIoPaSdFgHjKlZxCvBn", "sk-proj-9f8e7d6c5b4a39281706f5e4", "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4")
SEEDS = (
    r"""docker run -d --name ab --gpus all -v /srv/m:/model:ro \
  -e HF_TOKEN=@SECRET@ vllm/vllm-openai:v0.33.0 \
  --model /model --speculative-config '{"method":"mtp","n":3}' --served-model-name a b \
  --port 31
""",
    r"""#!/bin/bash
set -e
X=${Y:-/srv/m}
K=$(cat ~/k)
docker rm -f a || true
sudo docker run --gpus '"device=0,1"' --mount type=bind,src=$X,dst=/m,ro -e K=$K -e P --env-file a.env \
  -p 80:80 x/vllm:1 vllm serve /m -tp 1 -O3
""",
    r"""$ docker run -it --rm lmsysorg/sglang:v0.5.20 \
> bash -c "export A=1 && python3 -m sglang.launch_server --tp 1"
""",
    "docker run i:1 `\r\n \u2014model /m "
    '--compilation-config {"a": [1, 2]} --attention_config.b.c=false `\r\n --api-key @SECRET@',
    """[{"Config": {"Image": "a:b", "Cmd": ["--model", "m", "--api-key", "@SECRET@"], "Env": ["T_TOKEN=@SECRET@"]},
"HostConfig": {}}]""",
    """IMG=vllm/vllm-openai:v0.33.0-cu130 D=/srv/{m,n}
CID=$(docker run -d -v ${D%/*}/m:/model ${IMG%-*} --served-model-name {a,b}{1..3} --port ${#IMG} -e T_TOKEN=@SECRET@)
docker logs -f $CID 2>&1
""",
    """x: &x {restart: always}
services:
  a:
    <<: *x
    image: vllm/vllm-openai:${V:-v0.33.0}
    command: --model /m --api-key ${K:?no} --served-model-name "a b"
    environment: [A=$$B, T_TOKEN=@SECRET@]
    volumes: [~/a:/m:ro, c:/c]
    healthcheck: {test: [CMD, curl, x], retries: 3}
    deploy: {resources: {reservations: {devices: [{count: all, capabilities: [gpu]}]}}}
""",
    """apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  template:
    spec:
      containers:
      - name: b
        image: vllm/vllm-openai:v0.33.0
        args: [--model, $(M), --api-key, "@SECRET@"]
        env: [{name: M, value: /m}, {name: T_TOKEN, valueFrom: {secretKeyRef: {name: x, key: y}}}]
        volumeMounts: [{name: c, mountPath: /c}]
      volumes: [{name: c, hostPath: {path: /d}}]
""",
    """[Service]
Environment=T_TOKEN=@SECRET@ "M=/m a"
ExecStart=-/usr/bin/docker run --name %N -e T_TOKEN -e X=${M} \\
  vllm/vllm-openai:v0.33.0 --model ${M} $M
""",
    """[Container]
Image=docker.io/vllm/vllm-openai:v0.33.0
Environment=T_TOKEN=@SECRET@ A="b \\x41"
Exec=--model /m --api-key @SECRET@ --x '{"a": "%%b $$c"}'
""",
    "model: /m\nport: 8000\napi-key: @SECRET@\ntrust-remote-code: true\n",
    "schema: jm-recipe/v1\nid: a/b\ntitle: abc\nlaunch:\n  command: docker run i:1 --model m --api-key @SECRET@\n",
)
PIECES = (
    *(
        "'",
        '"',
        "\\",
        "\n",
        "`",
        "$(",
        "${",
        "}",
        ")",
        "{{",
        "}}",
        "(",
        "$((",
        "<<EOF\n",
        "EOF\n",
        "-v ",
        "-e ",
        "--name ",
    ),
    *(
        "=",
        ":",
        "|",
        "&&",
        ";",
        "#",
        "\r\n",
        "\u2014",
        "\u201c",
        "\u2019",
        "\u00a0",
        '{"a":',
        "[1, 2",
        "--",
        "-",
        "$'\\x41'",
    ),
    *(
        "$X",
        "${X:-",
        "~",
        "\0",
        "\ue000",
        "\ue0010",
        "--gpus ",
        "@sha256:",
        " \\\n",
        "\\ \n",
        "$ ",
        "> ",
        "1e999",
        "NaN",
    ),
    *(
        "for x in a; do\n",
        "if [ $X ]; then\n",
        "case $X in a)",
        "esac\n",
        "fi\n",
        "done\n",
        "f() {\n",
        "A+=(",
        "[[ ",
        "]] &&",
        "--a.b.c 3 ",
        "-O3 ",
        "\x1b[31m",
        "\u00e9",
        "\u202e",
        "\ud83d",
        "\u2028",
        "--api-key @SECRET@ ",
    ),
    *(
        "-e TOKEN=@SECRET@ ",
        "--label x=@SECRET@ ",
        "--foo @SECRET@ ",
        "# @SECRET@\n",
        "X=@SECRET@ ",
        "@SECRET@",
        "x@SECRET@",
    ),
)


def paste(chance: random.Random) -> str:
    """One of them."""
    text = script(chance) if chance.random() < 0.3 else chance.choice(SEEDS)
    for _ in range(chance.randint(1, 8)):
        text = _changed(chance, text)
    while "@SECRET@" in text:
        text = text.replace("@SECRET@", chance.choice(SECRETS), 1)
    return text


def outcome(text: str) -> str:
    """Everything that is printed of an import."""
    try:
        found = read(text)
    except (CompileError, RecipeError) as error:
        return " ".join((error.message, error.hint or "", *(json.dumps(d.as_json()) for d in error.diagnostics)))
    plan = json.dumps(plan_document(found.plan), default=str)
    return " ".join((to_yaml(found.document), plan, *(json.dumps(d.as_json()) for d in found.diagnostics)))


def told(text: str) -> list[str]:
    """The secrets that the outcome of a paste tells."""
    said = outcome(text)
    return [secret for secret in SECRETS if secret[:12] in said]


def judge_paste(text: bytes, limit: float = SECONDS) -> Failure | None:
    """None where the paste comes to a recipe or to a clean refusal, in time, and tells no secret."""
    return judged(lambda: _no_secret(text.decode("utf-8", "surrogatepass")), limit)


def _no_secret(text: str) -> None:
    if found := told(text):
        raise BrokenError(f"secret: {found}")


def _changed(chance: random.Random, text: str) -> str:
    start = chance.randint(0, len(text))
    end = min(len(text), start + chance.randint(0, 30))
    before, cut, after = text[:start], text[start:end], text[end:]
    match chance.randint(0, 6):
        case 0:
            changed = before + after
        case 1:
            changed = before + chance.choice(PIECES) + cut + after
        case 2:
            changed = before + cut * chance.randint(2, 5) + after
        case 3:
            other = chance.choice(SEEDS)
            at = chance.randint(0, len(other))
            changed = before + other[at : at + chance.randint(0, 80)] + cut + after
        case 4:
            changed = before + chr(chance.randint(0, 0x2FFF)) + after
        case 5:
            signs = chance.choice(" \n\"'-"), chance.choice(("", " ", "\n", '"', "'", "--"))
            changed = text.replace(*signs, chance.randint(1, 5))
        case _:
            changed = before + chance.choice(PIECES) + after
    return changed
