"""Recipes of one model over several machines."""

from tests.support.recipes import HEAD

_REST = """\
image: {repository: lab/engine, tag: v1}
model: {path: /models/b, mount: /model}
nodes: NODES
container:
  name: bench
  gpus: 1
  ipc: host
  network: host
  restart: unless-stopped
  secrets: {KEY: {env: KEY}}
engine:
  name: ENGINE
  options: OPTIONS
"""


def spread(nodes: int, engine: str, options: str) -> str:
    """The text of one."""
    text = _REST.replace("NODES", str(nodes)).replace("ENGINE", engine).replace("OPTIONS", options)
    return HEAD.format(release="v1") + text


OWN = spread(
    2, "vllm", "{model: /model, pipeline_parallel_size: 2, api_key: {secret: KEY}, port: 30006}"
)  # fmt: skip
RAY = spread(3, "vllm", "{model: /model, pipeline_parallel_size: 3, distributed_executor_backend: ray}")
SGLANG = spread(2, "sglang", "{model_path: /model, tp_size: 2, port: 30006}")
"""The engines' own ways: vLLM's processes, Ray, SGLang's."""

ALL = {"own": OWN, "ray": RAY, "sglang": SGLANG}
