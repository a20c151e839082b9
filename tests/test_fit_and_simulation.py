"""`fit` and the simulated Station agree: whether a launch boots, why it does not, and the tokens of its KV cache."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gb300serve.app.environment import read_environment
from gb300serve.app.fit import Fitter
from gb300serve.app.workspace import RecipeInvalidError, Workspace
from gb300serve.boot.diagnosis import Diagnosis
from gb300serve.cli.console import TerminalConsole
from gb300serve.core.errors import Gb300Error
from gb300serve.fit.result import FitResult
from gb300serve.simulator import records
from gb300serve.simulator.engine import registry
from gb300serve.simulator.engine.settings import read_environment as read_simulation
from tests.support.long import LONG
from tests.support.program import ROOT
from tests.support.simulated import STARTED, boot_of, exit_code

RECIPES = ROOT / "recipes"
SHIPPED = sorted(path.relative_to(RECIPES) for path in RECIPES.glob("*/*.yaml") if path.stem != "lane")
# A boot of exactly this request may have logged a figure that the formula gives with this error (GiB, share of tokens).
MEASURED_GIB, MEASURED_SHARE = 0.1, 0.02
OWN = """\
format: gb300serve/1
lane: own
release: v1
title: A model of our own
status: draft
image: {repository: vllm/vllm-openai, tag: v0.33.0}
model: {repo: own/model, path: /models/own, mount: /model}
container: {name: own, gpus: all, network: host}
engine: {name: vllm, version: 0.33.0, options: {model: /model}}
"""


def workspace(recipes: Path) -> Workspace:
    environment = read_environment({"HOME": "/nonexistent"})
    return Workspace(environment, TerminalConsole(StringIO(), StringIO()), (recipes,))


def outcome(space: Workspace, ref: str, sets: tuple[str, ...] = ()) -> tuple[FitResult | None, int | None, Diagnosis]:
    """What `fit` says, the exit code of the simulated engine (None: it serves), and the diagnosis of its boot."""
    loaded, recipe = space.load(ref, list(sets))
    result = Fitter(space).result(loaded, recipe, sets)
    plan = space.compile(loaded, recipe)
    memory = recipe.memory.model_dump(exclude_none=True) if recipe.memory else None
    variables = records.simulation_variables(plan, "", plan.engine_version or "0.33.0", memory)
    launch = registry.parse_settings(plan.command, read_simulation({**plan.container.env, **variables}))
    script = registry.boot_script(launch, None, STARTED)
    return result, exit_code(script), boot_of(script).result()


def agree(result: FitResult, code: int | None, boot: Diagnosis) -> None:
    plan = result.plan
    if plan.hbm.kv_cache_gib is not None and abs(plan.hbm.kv_cache_gib - plan.needed_gib) < MEASURED_GIB:
        return  # the formula is not exact enough to decide
    if result.verdict == "refused":
        assert boot.state == "failed" or code == 137, boot.summary
        if result.host_verdict == "refused" and plan.verdict != "refused":
            assert code == 137 or boot.reason == "hook-aborted", boot.reason
    elif result.verdict in ("fits", "short"):
        assert (code, boot.state) == (None, "ready"), boot.reason
        tokens = boot.values["kv_cache_tokens"]
        assert isinstance(tokens, int)
        assert plan.kv_cache_tokens is not None
        assert abs(tokens - plan.kv_cache_tokens) <= MEASURED_SHARE * plan.kv_cache_tokens + MEASURED_GIB * 2**30 / 4096


@pytest.mark.parametrize("path", SHIPPED, ids=str)
def test_shipped_recipes(path: Path) -> None:
    space = workspace(RECIPES)
    ref = str(path.with_suffix(""))
    try:
        result, code, boot = outcome(space, ref)
    except Gb300Error:
        return  # test_shipped_recipes.py says which recipes do not compile for one machine
    if result is not None:
        agree(result, code, boot)


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "cpu_offload_gb": st.integers(0, 110),
        "gpu_memory_utilization": st.integers(80, 99).map(lambda percent: percent / 100),
        "max_model_len": st.sampled_from([8192, 131072, 262144, 524288, 1048576]),
        "max_num_seqs": st.sampled_from([4, 16, 24, 32]),
        "kv_cache_memory_bytes": st.integers(1, 30).map(lambda gib: gib * 2**30),
    },
)
MEMORY = st.fixed_dictionaries(
    {},
    optional={
        "host.needed_gib": st.integers(200, 600),
        "graphs_gib.value": st.floats(0.1, 8.0).map(lambda gib: round(gib, 2)),
    },
)


@settings(max_examples=400 if LONG else 40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(["v12", "v14", "v15", "v18", "v21"]), OPTIONS, MEMORY)
def test_changed_releases(release: str, options: dict[str, Any], memory: dict[str, Any]) -> None:
    space = workspace(RECIPES)
    sets = [f"engine.options.{name}={value}" for name, value in options.items()]
    for name, value in memory.items():
        sets += [f"memory.{name}={value}", f"memory.{name.partition('.')[0]}.basis=generated"]
    result, code, boot = outcome(space, f"deepseek-v4.1-flash/{release}", tuple(sets))
    assert result is not None
    agree(result, code, boot)


@st.composite
def own_models(draw: st.DrawFn) -> str:
    """A recipe of a model that the package does not know, with everything that `fit` needs."""
    layers = draw(st.integers(1, 60))
    expert = draw(st.integers(1, 4 * 2**30))
    weights = draw(st.floats(1.02, 2.0)) * layers * expert / 2**30 + 0.5
    overhead = weights + draw(st.floats(0.5, 20.0))
    offload = draw(st.integers(0, round(weights)))
    length = draw(st.sampled_from([4096, 32768, 262144]))
    return (
        OWN.rstrip("}\n")
        + f", max_model_len: {length}, cpu_offload_gb: {offload}, gpu_memory_utilization: 0.9}}}}\n"
        + "memory:\n"
        + f"  overhead_gib: {overhead:.2f}\n  basis: generated\n  weights_gib: {weights:.2f}\n  layers: {layers}\n"
        + f'  parameters: [{{name: "model.layers.{{layer}}.mlp.experts.w13_weight", bytes: {expert}}}]\n'
        + f"  kv_cache: {{bytes_per_token: {draw(st.integers(1000, 400000))}, block_tokens: 16}}\n"
        + f"  max_model_len: {length}\n"
    )


@settings(max_examples=400 if LONG else 40, deadline=None, suppress_health_check=list(HealthCheck))
@given(own_models())
def test_models_of_our_own(tmp_path: Path, text: str) -> None:
    file = tmp_path / "own" / "v1.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8")
    try:
        result, code, boot = outcome(workspace(tmp_path), str(file))
    except RecipeInvalidError:
        assume(False)
    assert result is not None
    agree(result, code, boot)
