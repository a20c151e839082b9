from pathlib import Path

import pytest

from tests.support.recipes import ENGINE, alone, container, load, problems, write

EVERYTHING = """\
format: gb300serve/1
lane: bench
release: v1
title: Everything
status: experimental
image: {repository: a/b, tag: c, digest: "sha256:%(sha)s"}
model: {repo: a/b, revision: c, path: /models/b, mount: /model}
models: [{repo: a/d, revision: e, path: /models/d, mount: /draft}]
container:
  name: bench
  gpus: all
  ipc: host
  network: bridge
  shm_size: 16g
  ulimits: {memlock: -1, nofile: {soft: 1024, hard: 4096}}
  cap_add: [IPC_LOCK]
  security_opt: [seccomp=unconfined]
  init: true
  stop_timeout: 30
  user: "1000:1000"
  workdir: /w
  pid: host
  memory: 64g
  tmpfs: ["/tmp:size=1g"]
  log: {driver: json-file, options: {max-size: 10m}}
  devices: [/dev/fuse]
  labels: {team: bench}
  ports: ["8021:8000"]
  mounts:
    - {source: /a, target: /b, sha256: %(sha)s}
    - {source: /c, target: /d, read_only: true, sha256: {f: %(sha)s}}
  env: {A: x}
  secrets: {K: {env: K}, L: {file: /l}}
  entrypoint: vllm
  restart: "on-failure:3"
engine:
  name: vllm
  version: 0.33.0
  launcher: [serve]
  options: {model: /model, api_key: {secret: K}}
  extra_args: [--new-flag, "3"]
boot:
  phases: {starting: {seconds: 21, basis: measured}}
  total: {seconds: 454.5, basis: measured}
  receipts: [{line: "x {value}", value: 61.17, tolerance: 0.01, missing: fail, basis: measured}]
  tuning_cache: {identity: 9ac7b387, configs: 210, basis: measured}
memory: {overhead_gib: 298.74, basis: measured}
evidence: [{figure: a, value: 91.0, unit: tok/s, workload: b, method: c, run: d}]
limits: [slow]
probes: [{name: a, prompt: b, contains: [c]}]
lint: {ignore: {IMG001: a reason}}
""" % {"sha": "0123456789abcdef" * 4}


def test_everything_that_a_recipe_may_say(tmp_path: Path) -> None:
    assert problems(tmp_path, EVERYTHING) == []


TEXTS = ["shm_size", "ipc", "network", "user", "workdir", "pid", "memory", "entrypoint", "name", "restart"]


@pytest.mark.parametrize("value", ["1", "0.5", "true", "false", "[a]", "{a: b}", '""'])
@pytest.mark.parametrize("key", TEXTS)
def test_text_is_text(tmp_path: Path, key: str, value: str) -> None:
    (problem,) = problems(tmp_path, container(f"{key}: {value}"))
    assert problem.code in {"FMT002", "FMT004"}
    assert problem.path == f"container.{key}"


@pytest.mark.parametrize("value", ["yes", "0x10", "1e3", "2026-09-15", "1:30", "010", "1_0", "~"])
@pytest.mark.parametrize("key", ["shm_size: ", "stop_timeout: ", "init: ", "env: {A: ", "labels: {a: "])
def test_ambiguous_values_in_any_field(tmp_path: Path, key: str, value: str) -> None:
    text = f"{key}{value}" + ("}" if "{" in key else "")
    assert [d.code for d in problems(tmp_path, container(text))] == ["YAML005"]


@pytest.mark.parametrize(
    "options",
    ["stop_timeout: 1.0", 'stop_timeout: "1"', "stop_timeout: true", "stop_timeout: -1", "init: 1", 'init: "true"',
     "restart: sometimes", "restart: on-failure:x", 'name: a', "name: a b", "name: -ab", "mounts: [/a:/b]",
     "env: [A=x]", "env: {A: 1}", "env: {A-B: x}", "labels: {a: 1}", "ports: [8000]", "ports: 8021:8000",
     "cap_add: {IPC_LOCK: true}", "tmpfs: [1]", "secrets: {A B: {env: A}}", "log: json-file", "log: {options: {a: 1}}"],
)  # fmt: skip
def test_what_the_container_does_not_take(tmp_path: Path, options: str) -> None:
    assert [d.code[:3] for d in problems(tmp_path, container(options))] == ["FMT"]


@pytest.mark.parametrize(
    ("rest", "path"),
    [
        ("boot: {total: {seconds: -1, basis: x}}", "boot.total.seconds"),
        ('boot: {total: {seconds: "1", basis: x}}', "boot.total.seconds"),
        ("boot: {total: {seconds: true, basis: x}}", "boot.total.seconds"),
        ('boot: {receipts: [{line: "{value} of {value}"}]}', "boot.receipts.0.line"),
        ("boot: {phases: {warming: {seconds: 1, basis: x}}}", "boot.phases.warming"),
        ("evidence: [{figure: a, value: fast, unit: u, workload: w, method: m}]", "evidence.0.value"),
        ("lint: {ignore: [A]}", "lint.ignore"),
        ("lint: {ignore: {A: null}}", None),
        ("extends: [v1]", "extends"),
    ],
)
def test_the_rest_of_a_recipe(tmp_path: Path, rest: str, path: str | None) -> None:
    assert [d.path for d in problems(tmp_path, alone(f"{ENGINE}{rest}\n"))] == ([path] if path else [])


def test_numbers_are_kept_as_written(tmp_path: Path) -> None:
    text = alone(
        "engine:\n  name: vllm\n  version: 0.33.0\n  options:\n    gpu_memory_utilization: 0.90\n"
        "boot: {total: {seconds: 450.0, basis: x}}\nevidence: [{figure: a, value: 91.0, unit: u, workload: w, method: m}]\n"
    )
    recipe = load(write(tmp_path, {"v1": text}), "v1").recipe
    assert recipe is not None
    assert recipe.boot.total is not None
    numbers = (recipe.engine.options["gpu_memory_utilization"], recipe.boot.total.seconds, recipe.evidence[0].value)
    assert [str(number) for number in numbers] == ["0.90", "450.0", "91.0"]
