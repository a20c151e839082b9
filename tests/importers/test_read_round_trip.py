"""import(compile(r)) says what r does, and compile(import(c)) is c."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gb300serve.app.targets import TARGETS, service_of
from gb300serve.engines.options import option_arguments
from gb300serve.engines.tables import table
from gb300serve.plan.compile import Compiler
from gb300serve.plan.model import Plan
from gb300serve.recipe.site import load_site
from gb300serve.recipe.write import to_yaml
from gb300serve.render.docker_run import docker_argv, shell_text
from gb300serve.render.kubernetes.manifests import kubernetes
from tests.support.imports import argv, read
from tests.support.recipes import EVERYTHING, alone, load, write

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
SHIPPED = sorted(f"{path.parent.name}/{path.stem}" for path in RECIPES.glob("*/*.yaml") if path.stem != "lane")


def plan(directory: Path, ref: str) -> Plan:
    recipe = load(directory, ref).recipe
    assert recipe is not None
    return Compiler(load_site(None, RECIPES / "site.yaml")).plan(recipe)


@pytest.mark.parametrize("ref", SHIPPED)
def test_every_shipped_recipe(ref: str) -> None:
    compiled = plan(RECIPES, ref)
    found = read(shell_text(compiled))
    assert docker_argv(found.plan) == docker_argv(compiled)
    assert [d for d in found.diagnostics if d.severity != "note" and "extra_args" not in (d.path or "")] == []


FILES = {"compose": "compose.yaml", "quadlet": "lane.container", "kubernetes": "lane.yaml"}


@pytest.mark.parametrize("to", sorted(TARGETS))
@pytest.mark.parametrize("ref", SHIPPED)
def test_every_shipped_recipe_through_every_target(ref: str, to: str) -> None:
    compiled, recipe = plan(RECIPES, ref), load(RECIPES, ref).recipe
    assert recipe is not None
    found = read(TARGETS[to](compiled, service_of(recipe)).text, None, FILES[to])
    expected = list(docker_argv(compiled))
    if to == "kubernetes":  # a pod has no ulimits and no labels of the host's SELinux, and requests a number of GPUs
        options = tuple(option for option in compiled.container.security_opt if option != "label=disable")
        container = replace(compiled.container, gpus="1", ulimits={}, security_opt=options)
        expected = list(docker_argv(replace(compiled, container=container)))
    assert list(docker_argv(found.plan)) == expected
    assert [d for d in found.diagnostics if d.severity != "note" and "extra_args" not in (d.path or "")] == []


NODES = """\
nodes: 2
container: {{name: bench, gpus: 1, ipc: host, network: host}}
engine: {{name: vllm, version: 0.33.0, options: {{model: /model, tensor_parallel_size: 2{}}}}}
"""


@pytest.mark.parametrize("backend", ["", ", distributed_executor_backend: ray"])
def test_a_group_of_machines(tmp_path: Path, backend: str) -> None:
    directory = write(tmp_path, {"v1": alone(NODES.format(backend))})
    compiled, recipe = plan(directory, "bench/v1"), load(directory, "bench/v1").recipe
    assert recipe is not None
    found = read(kubernetes(compiled, service_of(recipe)).text, None, "lane.yaml").plan
    assert (found.nodes, docker_argv(found)) == (2, docker_argv(compiled))


def test_a_recipe_with_every_option(tmp_path: Path) -> None:
    compiled = plan(write(tmp_path, {"v1": EVERYTHING}), "bench/v1")
    assert argv(shell_text(compiled)) == list(docker_argv(compiled))


TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Zs")), max_size=12
)
WORDS = st.sampled_from(["a", "a b", "it's", '"q"', "$HOME", "a\\b", "x;y", "#z", "~", "{a,b}", "*", "=x", "a=b", "!"])
OPTION_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "max_model_len": st.one_of(st.integers(1, 2**31), st.sampled_from(["64K", "1M", "1.5k"])),
    "max_num_seqs": st.integers(1, 4096),
    "gpu_memory_utilization": st.sampled_from([0.5, 0.97]),
    "cpu_offload_gb": st.integers(0, 300),
    "trust_remote_code": st.just(value=True),
    "enable_prefix_caching": st.booleans(),
    "served_model_name": st.one_of(WORDS, st.lists(WORDS, min_size=1, max_size=3)),
    "speculative_config": st.fixed_dictionaries(
        {"method": st.sampled_from(["mtp", "ngram"]), "num_speculative_tokens": st.integers(1, 9)}
    ),
    "engram_config": st.fixed_dictionaries({"cpu_offload": st.booleans()}),
    "cudagraph_capture_sizes": st.lists(st.integers(1, 512), min_size=1, max_size=5),
    "chat_template": WORDS,
    "port": st.integers(1, 65535),
}
OPTIONS = st.fixed_dictionaries({}, optional=OPTION_VALUES)
SGLANG_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "context_length": st.one_of(st.integers(1, 2**31), st.sampled_from(["64Ki", "1M", "1.5k"])),
    "max_running_requests": st.integers(1, 4096),
    "mem_fraction_static": st.sampled_from([0.5, 0.85]),
    "trust_remote_code": st.just(value=True),
    "lora_strict_loading": st.booleans(),
    "served_model_name": WORDS,
    "cuda_graph_bs_decode": st.lists(st.integers(1, 512), min_size=1, max_size=5),
    "json_model_override_args": st.dictionaries(st.sampled_from(["a", "b"]), WORDS, min_size=1),
    "preferred_sampling_params": st.fixed_dictionaries({"temperature": st.sampled_from([0.6, 1])}),
    "kv_cache_dtype": st.sampled_from(["auto", "fp8_e4m3"]),
    "chat_template": WORDS,
    "port": st.integers(1, 65535),
}
SGLANG_OPTIONS = st.fixed_dictionaries({}, optional=SGLANG_VALUES)
ENGINES = st.one_of(
    st.tuples(st.just(("vllm", "0.33.0", "vllm/vllm-openai", ())), OPTIONS),
    st.tuples(
        st.sampled_from(
            [
                ("sglang", "0.5.23", "lmsysorg/sglang", ("python3", "-m", "sglang.launch_server")),
                ("sglang", "0.5.23", "lmsysorg/sglang", ("sglang", "serve")),
            ]
        ),
        SGLANG_OPTIONS,
    ),
)
SOURCES = st.sampled_from(["/a", "/b c", "/it's", "/d$e"])
CONTAINERS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["bench", "a.b-c_d"]),
        "gpus": st.sampled_from(["all", 2, {"uuid": "GPU-1"}, {"uuid": ["GPU-1", "GPU-2"]}, {"index": [0]}]),
        "ipc": st.just("host"),
        "shm_size": st.just("16g"),
        "ulimits": st.just({"memlock": -1, "nofile": {"soft": 1, "hard": 2}}),
        "env": st.dictionaries(st.sampled_from(["A", "B_C"]), st.one_of(WORDS, TEXTS), max_size=2),
        "labels": st.dictionaries(st.sampled_from(["a", "b.c"]), WORDS, max_size=2),
        "mounts": st.lists(
            st.fixed_dictionaries(
                {"source": st.sampled_from(["/a", "/b c", "/it's", "/d$e"]), "target": st.just("/t")}
            ),
            max_size=2,
        ),
        "secrets": st.just({"HF_TOKEN": {"env": "HF"}, "K": {"file": "/k/it's"}}),
        "ports": st.just(["80:8000"]),
    },
)


@settings(max_examples=40, deadline=None)
@given(asked=ENGINES, container=CONTAINERS)
def test_generated_recipes(
    tmp_path_factory: pytest.TempPathFactory, asked: tuple[Any, dict[str, Any]], container: dict[str, Any]
) -> None:
    (name, version, repository, launcher), options = asked
    model = {"model" if name == "vllm" else "model_path": "/model"}
    engine = {"name": name, "version": version} | ({"launcher": list(launcher)} if launcher else {})
    document = {
        "format": "gb300serve/1",
        "lane": "bench",
        "release": "v1",
        "title": "x",
        "status": "draft",
        "image": {"repository": repository, "tag": f"v{version}"},
        "container": container,
        "engine": engine | {"options": model | options},
    }
    compiled = plan(write(tmp_path_factory.mktemp("r"), {"v1": to_yaml(document)}), "bench/v1")
    once = read(shell_text(compiled))
    assert docker_argv(once.plan) == docker_argv(compiled)
    assert read(shell_text(once.plan)).document == once.document


@pytest.mark.parametrize("option", sorted(o.key for o in table("sglang", "0.5.23").options() if o.kind == "bool"))
def test_every_switch_of_sglang(option: str) -> None:
    shipped = table("sglang", "0.5.23")
    launcher = ["docker", "run", "-d", "lmsysorg/sglang:v0.5.23", "sglang", "serve", "--model-path", "/model"]
    switch = shipped.find(option)
    assert switch is not None
    words = [*launcher, *option_arguments(switch, True)]
    assert argv(shlex.join(words)) == words


@pytest.mark.parametrize("option", sorted(o.key for o in table("vllm", "0.33.0").options() if o.kind == "bool"))
def test_every_switch(option: str) -> None:
    switch = table("vllm", "0.33.0").find(option)
    assert switch is not None
    flag = option_arguments(switch, True)
    words = ["docker", "run", "-d", "vllm/vllm-openai:v0.33.0", "--model", "/model", *flag]
    assert argv(shlex.join(words)) == words
