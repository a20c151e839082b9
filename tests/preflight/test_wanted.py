from pathlib import Path

from gb300serve.host.model_files import Model, Wanted
from gb300serve.plan.compile import Compiler
from gb300serve.preflight.subject import wanted
from gb300serve.recipe.site import Site
from tests.support.recipes import ENGINE, alone, load, write

SHA = "0123456789abcdef" * 4


def of(directory: Path, rest: str) -> Wanted:
    loaded = load(write(directory, {"v1": alone(rest + ENGINE)}), "bench/v1")
    assert loaded.recipe is not None
    site = Site(models="/models", cache="/cache", patches="/patches")
    return wanted(Compiler(site).plan(loaded.recipe), loaded.recipe, (30006,))


def test_the_words_of_the_plan(tmp_path: Path) -> None:
    text = f"""\
model: {{repo: a/b, revision: rev, path: "${{models}}/b", mount: /model}}
models: [{{repo: a/d, path: /models/d, mount: /draft}}]
container:
  mounts:
    - {{source: "${{cache}}", target: /root/.cache/vllm}}
    - {{source: "${{patches}}/x.py", target: /x.py, sha256: {SHA}}}
    - {{source: "${{patches}}", target: /w, sha256: {{y.py: {SHA}, x.py: {SHA}}}}}
boot: {{tuning_cache: {{identity: 9ac7b387, configs: 210}}}}
"""
    assert of(tmp_path, text) == Wanted(
        "vllm/vllm-openai:v0.33.0",
        models=(Model("/models/b", "a/b", "rev"), Model("/models/d", "a/d")),
        caches=("/cache",),
        sources=("/models/b", "/models/d", "/cache", "/patches/x.py", "/patches"),
        patches=(("/patches/x.py", SHA), ("/patches/y.py", SHA)),
        ports=(30006,),
        tuning=("/cache", "9ac7b387"),
    )


def test_a_model_that_is_not_mounted_and_a_cache_that_is_not_said(tmp_path: Path) -> None:
    text = "model: {path: /models/b}\nboot: {tuning_cache: {identity: 9ac7b387, configs: 210}}\n"
    assert of(tmp_path, text) == Wanted("vllm/vllm-openai:v0.33.0", models=(Model("/models/b"),), ports=(30006,))


def test_a_recipe_without_a_model(tmp_path: Path) -> None:
    assert of(tmp_path, "") == Wanted("vllm/vllm-openai:v0.33.0", ports=(30006,))
