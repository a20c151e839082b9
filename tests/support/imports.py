"""Texts imported as the program imports them, and looked at."""

from collections.abc import Mapping
from typing import Any

import pytest

from gb300serve.core.errors import Gb300Error
from gb300serve.importers.read import NO_CHOICES, Choices, Result, read_text
from gb300serve.importers.report import NotImportableError
from gb300serve.importers.shell.words import ShellEnvironment
from gb300serve.render.docker_run import docker_argv

ENVIRONMENT = ShellEnvironment("/home/me", "/home/me/work", "me")
RUN = "docker run -d --gpus all -v /srv/m:/model:ro "
IMAGE = "vllm/vllm-openai:v0.33.0 "
# As people published it: a raw line feed inside the quoted JSON, no indentation, one flag with two values.
ARTICLE = """\
docker run -d --name dsv41-vllm --gpus all --ipc host --network host \\
--ulimit memlock=-1 --cap-add IPC_LOCK \\
-v /models/DeepSeek-V4.1-Flash-df42c109f1defefcbfcedbe7d905718a12266e40:/model:ro \\
-v /path/to/vllm-cache:/root/.cache/vllm \\
vllm/vllm-openai:deepseekv41-flash-0909 \\
--model /model --served-model-name dsv41-flash-uva --trust-remote-code \\
--tensor-parallel-size 1 \\
--offload-backend uva --cpu-offload-gb 60 \\
--cpu-offload-params routed_experts.w13_weight routed_experts.w2_weight \\
--engram-config '{"cpu_offload": true}' \\
--speculative-config '{"method":"dspark","num_speculative_tokens":5,
"num_speculative_tokens_per_batch_size":[[1,4,5],[5,16,1]]}' \\
--max-model-len 1048576 --max-num-seqs 16 --max-num-batched-tokens 8192 \\
--gpu-memory-utilization 0.97 \\
--long-prefill-token-threshold 6144 \\
--tool-call-parser deepseek_v41 --reasoning-parser deepseek_v41 --enable-auto-tool-choice \\
--port 30006
"""


def read(
    text: str, files: Mapping[str, str] | None = None, name: str = "input.sh", choices: Choices = NO_CHOICES
) -> Result:
    """The recipe of a text; `files` are those that it may name."""
    return read_text(text, name, ENVIRONMENT, (files or {}).get, choices)


def messages(found: Result) -> list[str]:
    """The findings without notes."""
    return [f"{finding.code} {finding.message}" for finding in found.diagnostics if finding.severity != "note"]


def refusal(text: str, name: str = "input.sh", choices: Choices = NO_CHOICES) -> str:
    """The reason why a text cannot be imported."""
    with pytest.raises(Gb300Error) as caught:
        read(text, None, name, choices)
    return caught.value.message


def command(text: str) -> list[str]:
    """The engine's words in the plan."""
    return list(read(text).plan.command)


def engine(words: str) -> dict[str, Any]:
    """`engine` of the recipe whose engine is told these words."""
    found: dict[str, Any] = read(RUN + IMAGE + words).document["engine"]
    return found


def container(options: str, files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """`container` of the recipe of a launch with these options."""
    found: dict[str, Any] = read(f"docker run {options} {IMAGE} /model", files).document.get("container", {})
    return found


def argv(text: str) -> list[str]:
    """All words of the command that the recipe compiles to."""
    return list(docker_argv(read(text).plan))


def said(text: str, files: Mapping[str, str] | None = None) -> list[tuple[str, str, int | None, int | None]]:
    """Severity, name, line and column of each finding; images of these texts are short: no digest, no engine's name."""
    try:
        found = read(text, files).diagnostics
    except Gb300Error as error:
        found = error.diagnostics
    short = ("image", "engine.name")
    return [(d.severity, d.name, d.line, d.column) for d in found if d.path not in short]


def refused(text: str) -> tuple[str, int | None, int | None]:
    """Why a text cannot be imported, with line and column."""
    try:
        read(text)
    except NotImportableError as error:
        last = error.diagnostics[-1]
        return last.message, last.line, last.column
    raise AssertionError("it was imported")
