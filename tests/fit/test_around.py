from pathlib import Path

from gb300serve.fit.request import around
from gb300serve.recipe.model import Recipe
from tests.support.recipes import alone, load, write

REST = """\
container:
  mounts:
    - {source: /cache, target: /root/.cache/vllm}
    - {source: /patch.py, target: /usr/lib/python3.12/sitecustomize.py}
  env: {VLLM_LOGGING_LEVEL: INFO, VLLM_USE_V2_MODEL_RUNNER: "1", PIN_MODE: split}
engine:
  name: vllm
  version: 0.33.0
  options: {model: /model}
  extra_args: [--new, "3"]
"""


def recipe(directory: Path) -> Recipe:
    found = load(write(directory, {"v1": alone(REST)}), "bench/v1").recipe
    assert found is not None
    return found


def test_patches_variables_and_raw_words(tmp_path: Path) -> None:
    engine = (("container.env.VLLM_USE_V2_MODEL_RUNNER", "1"), ("engine.extra_args", '["--new","3"]'))
    patch = ("container.mounts", "/usr/lib/python3.12/sitecustomize.py")
    assert around(recipe(tmp_path), None) == (patch, *engine)
    assert around(recipe(tmp_path), "pin-hot-experts") == engine
