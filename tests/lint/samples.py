"""Recipes without a finding, and what lint says when a few of their words change."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gb300serve.core.diagnostics import Diagnostic, Severity
from gb300serve.lint.run import RULES, findings
from gb300serve.lint.subject import LintSubject
from gb300serve.plan.check import check
from gb300serve.recipe.catalog import Catalog
from gb300serve.recipe.load import RecipeLoader

# A checkpoint that the package knows, on the day-0 build, with a schedule that is on record.
KNOWN = """\
format: gb300serve/1
lane: garden
release: v1
title: Garden lane
status: experimental
image:
  repository: vllm/vllm-openai
  tag: deepseekv41-flash-0909
  digest: sha256:00d577a6a63281e15336029d5bcee4e9a2cf182214a4f20ba6111b1c8e79893d
model:
  repo: deepseek-ai/DeepSeek-V4.1-Flash
  revision: df42c109f1defefcbfcedbe7d905718a12266e40
  path: ${models}/DeepSeek-V4.1-Flash-${model.revision}
  mount: /model
container:
  name: garden
  gpus: {name: GB300}
  ipc: host
  network: host
  mounts:
    - {source: "${cache}", target: /root/.cache/vllm}
engine:
  name: vllm
  version: 0.1.dev20904+g179dd0fa9
  options:
    model: /model
    served_model_name: garden
    trust_remote_code: true
    offload_backend: uva
    cpu_offload_gb: 70
    cpu_offload_params: [routed_experts.w13_weight, routed_experts.w2_weight]
    speculative_config:
      method: dspark
      num_speculative_tokens: 5
      num_speculative_tokens_per_batch_size: [[1, 4, 5], [5, 16, 1]]
    max_model_len: 1048576
    max_num_seqs: 16
    max_num_batched_tokens: 8192
    gpu_memory_utilization: 0.97
    long_prefill_token_threshold: 6144
    tool_call_parser: deepseek_v41
    reasoning_parser: deepseek_v41
    enable_auto_tool_choice: true
    port: 30777
"""

# A checkpoint that nobody knows, on a bridge network.
OTHER = """\
format: gb300serve/1
lane: orchard
release: v1
title: Orchard lane
status: draft
image:
  repository: vllm/vllm-openai
  tag: v0.32.0
  digest: sha256:1d2c3b4a5968778695a4b3c2d1e0f1e2d3c4b5a697887960514233241506f7e8
model:
  repo: acme/Quince-9B
  revision: 0123456789abcdef0123456789abcdef01234567
  path: ${models}/Quince-9B-${model.revision}
  mount: /model
container:
  name: orchard
  gpus: {name: GB300}
  ipc: host
  ports: ["8105:8000"]
  mounts:
    - {source: "${cache}", target: /root/.cache/vllm}
  env:
    VLLM_LOGGING_LEVEL: INFO
engine:
  name: vllm
  version: 0.32.0
  options:
    model: /model
    served_model_name: quince
    max_model_len: 65536
    max_num_seqs: 32
    max_num_batched_tokens: 8192
    gpu_memory_utilization: 0.9
    port: 8000
"""

SGLANG = """\
format: gb300serve/1
lane: meadow
release: v1
title: Meadow lane
status: draft
image:
  repository: lmsysorg/sglang
  tag: v0.5.20
  digest: sha256:2e3d4c5b6a79889706b5c4d3e2f102f3e4d5c6b7a8998a71625344352617a8f9
model:
  repo: acme/Quince-9B
  revision: 0123456789abcdef0123456789abcdef01234567
  path: ${models}/Quince-9B-${model.revision}
  mount: /model
container:
  name: meadow
  gpus: {name: GB300}
  shm_size: 32g
  network: host
engine:
  name: sglang
  version: 0.5.20
  launcher: [python3, -m, sglang.launch_server]
  options:
    model_path: /model
    context_length: 65536
    port: 30778
"""

BASES = {"known": KNOWN, "other": OTHER, "sglang": SGLANG}
Changes = Mapping[str, str]


class Said(NamedTuple):
    """A finding but for its code, name and file."""

    severity: Severity
    message: str
    hint: str | None
    line: int
    column: int
    path: str | None


class Case(NamedTuple):
    """A rule, changes of a base that it speaks of, what it says, and a neighbour that it does not mind."""

    code: str
    base: str
    bad: Changes
    said: Said
    good: Changes


def changed(text: str, changes: Changes) -> str:
    """`text` with each key replaced by its value; every key must occur exactly once."""
    for old, new in changes.items():
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
        text = text.replace(old, new)
    return text


def lint(directory: Path, text: str, pinned: str | None = None) -> list[Diagnostic]:
    """What lint says of a recipe that has this text; the note about a version without a table left out."""
    path = directory / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    loaded = RecipeLoader(Catalog(())).load_file(Catalog(()).at(path))
    noticed = check(loaded)
    assert loaded.recipe is not None, noticed
    assert not [d for d in noticed if d.severity == "error"], noticed
    return [d for d in findings(LintSubject(loaded, loaded.recipe, pinned=pinned), noticed) if d.code != "OPT008"]


def judge(case: Case, directory: Path) -> None:
    """The bad recipe has this one finding, the good one has none."""
    base = BASES[case.base]
    found = lint(directory, changed(base, case.bad))
    name = RULES[case.code].name
    severity, message, hint, line, column, path = case.said
    file = str(directory / "recipe.yaml")
    assert found == [Diagnostic(case.code, name, severity, message, hint, file, line, column, path)]
    assert lint(directory, changed(base, case.good)) == []


def reported(directory: Path, base: str, changes: Changes) -> list[tuple[str, str, str | None]]:
    """Code, path and hint of each finding about a changed base."""
    return [(found.code, found.path or "", found.hint) for found in lint(directory, changed(BASES[base], changes))]
