"""Logs of vLLM 0.32.0 on a CPU, one boot each, whole; only paths were changed to those of a container."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from gb300serve.boot.diagnosis import Diagnosis
from gb300serve.boot.events import ReceiptValue
from gb300serve.engines.logs import boot_machine

LOGS = Path(__file__).parent / "logs"


class Said(NamedTuple):
    """What the log says: `line` holds the first evidence (0: there is none), `values` are among the values."""

    state: str
    phase: str
    reason: str | None
    line: int
    values: dict[str, ReceiptValue]


SAID = {
    "architecture": Said(
        "failed", "starting", "model-architecture-unknown", 52, {"architectures": "LlamaWithWingsForCausalLM"}
    ),
    "bad-choice": Said("failed", "starting", "bad-argument-value", 3, {"argument": "--offload-backend"}),
    "bad-human-int": Said("failed", "starting", "bad-argument-value", 3, {"argument": "--max-model-len"}),
    "bad-json-field": Said("failed", "starting", "invalid-json", 4, {"value": '{"mode":3'}),
    "bad-json-key": Said("failed", "starting", "bad-argument-value", 5, {"argument": "moe_backnd", "value": "'auto'"}),
    "bad-json": Said(
        "failed",
        "starting",
        "invalid-json",
        3,
        {"argument": "--speculative-config/-sc", "value": '{"method":"ngram",}'},
    ),
    "bad-kv-dtype": Said(
        "failed", "starting", "kv-dtype-unsupported", 3, {"argument": "--kv-cache-dtype", "value": "fp9"}
    ),
    "batched-below-seqs": Said(
        "failed", "starting", "bad-argument-value", 52, {"max_num_batched_tokens": 4, "max_num_seqs": 8}
    ),
    "clean-stop": Said("stopped", "serving", None, 0, {}),
    "compiled": Said("ready", "serving", None, 0, {}),
    "config-cut": Said("failed", "starting", "model-files-incomplete", 73, {"path": "/model/config.json"}),
    "context": Said("failed", "starting", "context-exceeds-model", 53, {"asked": 1048576, "limit": 4096}),
    "double-bind": Said("ready", "serving", None, 0, {}),
    "dspark": Said(
        "failed", "starting", "unsupported-on-engine", 61, {"runner": "V1", "feature": "dspark speculative decoding"}
    ),
    "engine-killed-booting": Said("failed", "starting", "killed", 79, {}),
    "engine-killed": Said("failed", "serving", "killed", 100, {}),
    "engram": Said("failed", "starting", "unsupported-on-engine", 51, {}),
    "interrupt": Said("stopped", "serving", None, 0, {}),
    "kv-too-small": Said(
        "failed",
        "sizing-kv-cache",
        "kv-cache-too-small",
        69,
        {"max_model_len": 8388608, "needed_gib": 4.0, "available_gib": 1.0, "estimated_max_model_len": 2097024},
    ),
    "lfs-pointer": Said("failed", "loading-weights", "model-files-incomplete", 135, {}),
    "long-prefill": Said(
        "failed",
        "starting",
        "bad-argument-value",
        51,
        {"argument": "long_prefill_token_threshold", "value": 99999, "max_model_len": 1024},
    ),
    "missing-shard": Said(
        "failed",
        "loading-weights",
        "model-files-incomplete",
        100,
        {"files": "'/model/model-00002-of-00002.safetensors'"},
    ),
    "model-type": Said("failed", "starting", "model-architecture-unknown", 10, {"model_type": "deepseek_v9"}),
    "no-weights": Said("failed", "loading-weights", "model-files-incomplete", 97, {"path": "/model"}),
    "path-empty": Said("failed", "starting", "model-path-not-visible", 52, {"path": "/model"}),
    "path-missing": Said("failed", "starting", "model-path-not-visible", 17, {"path": "/models/DeepSeek-V4.1-Flash"}),
    "port-in-use": Said("failed", "starting", "port-in-use", 38, {"port": 60805}),
    "port-range": Said("failed", "starting", "bad-argument-value", 38, {}),
    "quantization-mismatch": Said(
        "failed", "starting", "quantization-mismatch", 54, {"checkpoint": "fp8", "asked": "awq"}
    ),
    "quantization": Said("failed", "starting", "quantization-mismatch", 51, {"asked": "awq"}),
    "quoting-lost-braces": Said(
        "failed", "starting", "json-quoting-lost", 3, {"argument": "--speculative-config/-sc", "value": "method:ngram"}
    ),
    "quoting-lost-kernel": Said("failed", "starting", "json-quoting-lost", 4, {"value": "{moe_backend:auto}"}),
    "quoting-lost-spaces": Said(
        "failed", "starting", "json-quoting-lost", 3, {"argument": "--speculative-config/-sc", "value": "{method:"}
    ),
    "quoting-lost": Said("failed", "starting", "json-quoting-lost", 3, {"argument": "--speculative-config/-sc"}),
    "reasoning-parser": Said("failed", "starting", "unknown-parser", 63, {"parser": "deepseek_v99"}),
    "reasoning-tokens": Said("failed", "starting", "bad-argument-value", 63, {}),
    "remote-code": Said("failed", "starting", "needs-trust-remote-code", 10, {}),
    "schedule-gap": Said("failed", "serving", "bad-argument-value", 74, {}),
    "schedule-overlap": Said("failed", "serving", "bad-argument-value", 74, {}),
    "schedule-shape": Said(
        "failed",
        "starting",
        "bad-argument-value",
        55,
        {"argument": "num_speculative_tokens_per_batch_size.0.2", "value": "[1, 4]"},
    ),
    "serve-twice": Said("failed", "starting", "unknown-argument", 5, {"arguments": "/model"}),
    "spec-key": Said("failed", "starting", "bad-argument-value", 55, {"argument": "num_speculative_token", "value": 3}),
    "tokenizer-missing": Said("failed", "starting", "tokenizer-missing", 83, {}),
    "tool-choice": Said("failed", "starting", "bad-argument-value", 12, {}),
    "tool-parser": Said("failed", "starting", "unknown-parser", 37, {"parser": "deepseek_v99"}),
    "truncated-shard": Said("failed", "loading-weights", "model-files-incomplete", 135, {}),
    "unknown-argument": Said("failed", "starting", "unknown-argument", 5, {"arguments": "--offload-backnd uva"}),
    "utilization": Said(
        "failed", "starting", "bad-argument-value", 52, {"argument": "gpu_memory_utilization", "value": 97.0}
    ),
    "worker-killed-booting": Said("failed", "loading-weights", "killed", 75, {}),
    "worker-killed-loading": Said("failed", "loading-weights", "killed", 75, {}),
    "worker-killed-sizing": Said("failed", "sizing-kv-cache", "killed", 54, {"process": "VllmWorker-0", "signal": 9}),
    "worker-killed": Said("failed", "serving", "killed", 98, {"process": "VllmWorker-0"}),
}


def lines_of(name: str) -> Iterator[str]:
    """As `diagnose` reads a file: only line feeds end a line."""
    with (LOGS / f"{name}.log").open(encoding="utf-8", newline="\n") as log:
        yield from log


def diagnosed(name: str) -> Diagnosis:
    machine = boot_machine()
    for line in lines_of(name):
        machine.feed(line)
    return machine.result()


@pytest.mark.parametrize("name", SAID)
def test_what_the_real_engine_said(name: str) -> None:
    found, said = diagnosed(name), SAID[name]
    line = found.evidence[0].line if found.evidence else 0
    values = {key: value for key, value in found.values.items() if key in said.values}
    assert Said(found.state, found.phase, found.reason, line, values) == said
    assert found.boots == 1


def test_the_phases_of_a_boot_that_compiles() -> None:
    phases = [str(phase) for phase, _ in diagnosed("compiled").phases]
    assert phases == ["starting", "loading-weights", "compiling", "profiling", "sizing-kv-cache", "serving"]


def test_every_log_is_judged() -> None:
    assert {path.stem for path in LOGS.iterdir()} == SAID.keys()


@pytest.mark.parametrize("name", [name for name, said in SAID.items() if said.state == "failed"])
def test_a_failure_has_its_line_as_it_stands_and_advice(name: str) -> None:
    found = diagnosed(name)
    text = list(lines_of(name))[found.evidence[0].line - 1]
    assert found.evidence[0].text in text.replace("\r", "")
    assert found.advice


@pytest.mark.parametrize("name", SAID)
def test_the_end_of_a_log_names_no_other_reason(name: str) -> None:
    lines = (LOGS / f"{name}.log").read_text(encoding="utf-8").splitlines()
    for begin in range(1, len(lines), 9):
        machine = boot_machine()
        for line in lines[begin:]:
            machine.feed(line)
        assert machine.result().reason in {None, "unknown", SAID[name].reason}, begin
