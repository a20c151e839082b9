from pathlib import Path

import pytest

from gb300serve.lint.rules.offload import named_gib
from tests.lint.samples import KNOWN, OTHER, Case, Said, changed, judge, lint, reported

CASES = (
    Case(
        "OFF001",
        "other",
        bad={"    port: 8000\n": "    cpu_offload_params: [experts.w13_weight]\n    port: 8000\n"},
        said=Said(
            "warning",
            "cpu_offload_params is set, but cpu_offload_gb offloads nothing",
            "add `cpu_offload_gb`",
            34,
            5,
            "engine.options.cpu_offload_params",
        ),
        good={
            "    port: 8000\n": (
                "    cpu_offload_gb: 10\n    cpu_offload_params: [experts.w13_weight]\n    port: 8000\n"
            ),
            "acme/Quince-9B": "acme/Quince",
        },
    ),
    Case(
        "OFF002",
        "known",
        bad={"[routed_experts.w13_weight, routed_experts.w2_weight]": "[routed_experts.w13_weight, experts.w2_weight]"},
        said=Said(
            "error",
            ("`experts.w2_weight` does not match any known parameter of deepseek-ai/DeepSeek-V4.1-Flash"),
            "write [routed_experts.w13_weight, routed_experts.w2_weight]",
            31,
            53,
            "engine.options.cpu_offload_params.1",
        ),
        good={"[routed_experts.w13_weight, routed_experts.w2_weight]": "[routed_experts]"},
    ),
    Case(
        "OFF003",
        "other",
        bad={
            "    port: 8000\n": (
                "    offload_backend: prefetch\n    offload_group_size: 4\n    cpu_offload_gb: 12\n    port: 8000\n"
            ),
            "acme/Quince-9B": "acme/Quince",
        },
        said=Said(
            "warning",
            "the offload backend is prefetch, which ignores cpu_offload_gb",
            "remove it",
            36,
            5,
            "engine.options.cpu_offload_gb",
        ),
        good={"    port: 8000\n": "    offload_backend: prefetch\n    offload_group_size: 4\n    port: 8000\n"},
    ),
    Case(
        "OFF004",
        "other",
        bad={"    port: 8000\n": "    offload_backend: uva\n    port: 8000\n"},
        said=Said(
            "warning",
            "offload_backend uva without cpu_offload_gb moves nothing",
            "add `cpu_offload_gb`",
            34,
            22,
            "engine.options.offload_backend",
        ),
        good={"    port: 8000\n": "    offload_backend: auto\n    port: 8000\n"},
    ),
    Case(
        "OFF005",
        "known",
        bad={"    cpu_offload_params: [routed_experts.w13_weight, routed_experts.w2_weight]\n": ""},
        said=Said(
            "note",
            "cpu_offload_gb without cpu_offload_params moves whole layers, attention included",
            "write [routed_experts.w13_weight, routed_experts.w2_weight]",
            30,
            5,
            "engine.options.cpu_offload_gb",
        ),
        good={},
    ),
    Case(
        "OFF006",
        "other",
        bad={
            "repo: acme/Quince-9B": "repo: acme/Quince-40B-A3B-FP8",
            "    port: 8000\n": "    cpu_offload_gb: 24\n    cpu_offload_params: [experts.w2_weight]\n    port: 8000\n",
        },
        said=Said(
            "warning",
            "the weights are about 39 GiB, and the GPU gives 225: no offload is needed",
            "remove it",
            34,
            5,
            "engine.options.cpu_offload_gb",
        ),
        good={
            "repo: acme/Quince-9B": "repo: acme/Quince-400B-A30B-FP8",
            "    port: 8000\n": (
                "    cpu_offload_gb: 240\n    cpu_offload_params: [experts.w2_weight]\n    port: 8000\n"
            ),
        },
    ),
    Case(
        "OFF007",
        "known",
        bad={
            "0.1.dev20904+g179dd0fa9": "0.32.0",
            "    trust_remote_code: true\n": "    trust_remote_code: true\n",
            "      num_speculative_tokens_per_batch_size: [[1, 4, 5], [5, 16, 1]]\n": "",
            "num_speculative_tokens: 5": "num_speculative_tokens: 1",
        },
        said=Said(
            "warning",
            "vllm 0.32.0 runs this with model runner V2, which is reported to ignore cpu_offload_gb",
            'add a receipt: {line: "Total CPU offloaded parameters: {value}", missing: fail}',
            30,
            5,
            "engine.options.cpu_offload_gb",
        ),
        good={
            "0.1.dev20904+g179dd0fa9": "0.32.0",
            "      num_speculative_tokens_per_batch_size: [[1, 4, 5], [5, 16, 1]]\n": "",
            "num_speculative_tokens: 5": "num_speculative_tokens: 1",
            "status: experimental\n": (
                "status: experimental\n"
                "boot:\n"
                "  receipts:\n"
                '    - {line: "Total CPU offloaded parameters: {value}", value: 73.83, missing: '
                "fail}\n"
            ),
        },
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)


PARAMS = "[routed_experts.w13_weight, routed_experts.w2_weight]"


@pytest.mark.parametrize(
    "pattern", ["experts.*", "routed_experts.w?_weight", "a.w1,a.w2", "a.w1 a.w2", ".w1", "w1.", "^model", "layers[0]"]
)
@pytest.mark.parametrize("base", [KNOWN, OTHER], ids=["known", "unknown"])
def test_what_no_parameter_can_be_called(tmp_path: Path, base: str, pattern: str) -> None:
    options = f'    cpu_offload_gb: 20\n    cpu_offload_params: ["{pattern}"]\n    port: 8000\n'
    changes = {PARAMS: f'["{pattern}"]'} if base == KNOWN else {"    port: 8000\n": options, "Quince-9B\n": "Quince\n"}
    (found,) = lint(tmp_path, changed(base, changes))
    assert (found.code, found.severity) == ("OFF002", "error")
    assert found.message.startswith(f"`{pattern}` does not match any parameter")


@pytest.mark.parametrize("pattern", ["layers", "ffn.experts", "model.layers.0", "w2_weight", "routed_experts"])
def test_whole_segments_match(tmp_path: Path, pattern: str) -> None:
    assert "OFF002" not in {d.code for d in lint(tmp_path, changed(KNOWN, {PARAMS: f"[{pattern}]"}))}


def test_a_pattern_beside_one_that_matches_is_only_doubted(tmp_path: Path) -> None:
    (found,) = lint(tmp_path, changed(KNOWN, {PARAMS: "[routed_experts.w13_weight, self_attn]"}))
    assert (found.code, found.severity) == ("OFF002", "warning")


def test_a_known_checkpoint_that_does_not_fit_without_its_offload(tmp_path: Path) -> None:
    (found,) = lint(tmp_path, changed(KNOWN, {"    cpu_offload_gb: 70\n": "", "    offload_backend: uva\n": ""}))
    assert (found.code, found.severity) == ("OFF001", "error")


@pytest.mark.parametrize(
    ("repo", "gib"),
    [
        ("acme/Quince-30B-A3B-FP8", 29.3),
        ("acme/Quince-8B", 14.9),
        ("acme/Quince-1.5B-NVFP4", 0.8),
        ("acme/Quince-Flash", None),
        ("8B-labs/Quince", None),
    ],
)
def test_sizes_that_names_tell(repo: str, gib: float | None) -> None:
    found = named_gib(repo)
    assert found is None if gib is None else found == pytest.approx(gib, abs=0.05)


@pytest.mark.parametrize(
    ("options", "code", "path"),
    [
        ("cpu_offload_params: [w2_weight]", "OFF001", "cpu_offload_params"),
        ("cpu_offload_params: [w2_weight]\n    cpu_offload_gb: 0", "OFF001", "cpu_offload_params"),
        ("offload_params: [w2_weight]", "OFF001", "offload_params"),
        ("offload_params: [w2_weight]\n    offload_group_size: 0", "OFF001", "offload_params"),
        ("offload_backend: prefetch", "OFF004", "offload_backend"),
    ],
)
def test_patterns_without_a_backend(tmp_path: Path, options: str, code: str, path: str) -> None:
    found = reported(tmp_path, "other", {"    port: 8000\n": f"    {options}\n    port: 8000\n"})
    assert [finding[:2] for finding in found] == [(code, f"engine.options.{path}")]


@pytest.mark.parametrize(
    ("version", "variable", "codes"),
    [
        ("0.27.1", "INFO", ["OFF007"]),
        ("0.26.0", "INFO", ["OFF007"]),
        ("0.28.0", "INFO", []),
        ("0.25.0", "INFO", []),
        ("0.27.1", 'INFO\n    VLLM_USE_V2_MODEL_RUNNER: "0"', []),
    ],
)
def test_a_release_whose_runner_has_no_offload_backend(
    tmp_path: Path, version: str, variable: str, codes: list[str]
) -> None:
    offload = "    cpu_offload_gb: 60\n    cpu_offload_params: [w2_weight]\n    port: 8000\n"
    changes = {
        "Quince-9B\n  revision": "Quince-200B\n  revision",
        "    port: 8000\n": offload,
        "tag: v0.32.0": f"tag: v{version}",
        "version: 0.32.0": f"version: {version}",
        "LEVEL: INFO": f"LEVEL: {variable}",
    }
    assert [finding[0] for finding in reported(tmp_path, "other", changes)] == codes
