"""Recipes of tests: small texts, written where a catalog finds them, loaded as the program loads them."""

from pathlib import Path
from textwrap import dedent, indent

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.plan.check import check
from gb300serve.recipe.catalog import Catalog
from gb300serve.recipe.load import LoadedRecipe, RecipeLoader

LANE = "bench"
HEAD = """\
format: gb300serve/1
lane: bench
release: {release}
title: A bench
status: draft
"""
BODY = """\
image: {repository: vllm/vllm-openai, tag: v0.33.0}
"""
ENGINE = """\
engine:
  name: vllm
  version: 0.33.0
  options:
    model: /model
"""

EVERYTHING = """\
format: gb300serve/1
lane: bench
release: v1
title: Everything
status: experimental
image: {repository: a/b, tag: c, digest: "sha256:SHA"}
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
    - {source: /a, target: /b, sha256: SHA}
    - {source: /c, target: /d, read_only: true, sha256: {f: SHA}}
    - {volume: kept, target: /kept}
  env: {A: x}
  secrets: {K: {env: K}, L: {file: /l}}
  entrypoint: vllm
  restart: "on-failure:3"
  privileged: true
  group_add: ["109"]
  cpuset_cpus: 0-71
  memory_swap: "-1"
  add_host: ["db:10.0.0.5"]
  healthcheck: {test: curl -f http://localhost/health, interval: 30s, timeout: 5s, start_period: 1m30s, retries: 4}
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
""".replace("SHA", "0123456789abcdef" * 4)


def alone(rest: str = ENGINE, release: str = "v1") -> str:
    """A release that stands alone: `rest` is what follows the image, the engine when nothing else is said."""
    return HEAD.format(release=release) + BODY + dedent(rest)


def container(options: str) -> str:
    """A release with these container options."""
    return alone(f"container:\n{indent(dedent(options), '  ')}\n{ENGINE}")


def child(rest: str, release: str = "v2", parent: str = "v1") -> str:
    """A release that extends `parent`."""
    return HEAD.format(release=release) + f"extends: {parent}\n" + dedent(rest)


def write(directory: Path, texts: dict[str, str], lane: str = LANE) -> Path:
    """`<directory>/<lane>/<release>.yaml` for each release; returns the directory."""
    (directory / lane).mkdir(parents=True, exist_ok=True)
    for release, text in texts.items():
        (directory / lane / f"{release}.yaml").write_bytes(text.encode())
    return directory


def load(directory: Path, ref: str, *sets: str) -> LoadedRecipe:
    """The release as the program loads it from the recipes directory."""
    catalog = Catalog((directory,))
    return RecipeLoader(catalog).load_file(catalog.find(ref), sets)


def problems(directory: Path, text: str) -> list[Diagnostic]:
    """What is wrong with a text that stands alone, with its options and variables."""
    write(directory, {"v1": text})
    return list(check(load(directory, f"{LANE}/v1")))


def said(found: list[Diagnostic], text: str) -> list[tuple[str, str, str | None]]:
    """Code, the text that the position points at, and hint of each."""
    lines = text.split("\n")
    return [(d.code, _word(lines[(d.line or 1) - 1], (d.column or 1) - 1), d.hint) for d in found]


def _word(line: str, start: int) -> str:
    return line[start:].split(": ", maxsplit=1)[0].rstrip(" ,]}:")
