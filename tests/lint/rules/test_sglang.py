from pathlib import Path

import pytest

from tests.lint.samples import SGLANG, Case, Said, changed, judge, lint

LAST = "    port: 30778\n"
FLASH = {"acme/Quince-9B": "zai-org/GLM-5.3-Flash", LAST: f"    reasoning_parser: glm45\n{LAST}"}
THREADS = {"  network: host\n": '  network: host\n  env: {TORCHINDUCTOR_COMPILE_THREADS: "1"}\n'}
DRAFTED = {
    "  mount: /model\n": "  mount: /model\nmodels:\n  - {repo: acme/Draft, revision: "
    "0123456789abcdef0123456789abcdef01234567, path: /d, mount: /draft}\n"
}
DEEPSEEK = {
    "acme/Quince-9B": "deepseek-ai/DeepSeek-V4.1-Flash",
    "0123456789abcdef0123456789abcdef01234567": "df42c109f1defefcbfcedbe7d905718a12266e40",
    "sglang\n  tag: v0.5.20": "sglang\n  tag: v0.5.23",
    "  version: 0.5.20": "  version: 0.5.23",
    LAST: f"    reasoning_parser: deepseek-v41\n{LAST}",
}


def more(*lines: str) -> dict[str, str]:
    return {LAST: LAST + "".join(f"    {line}\n" for line in lines)}


CASES = (
    Case(
        "SGL001",
        "sglang",
        bad=FLASH,
        said=Said(
            "warning",
            "TORCHINDUCTOR_COMPILE_THREADS is not 1",
            'add TORCHINDUCTOR_COMPILE_THREADS: "1" to container.env',
            15,
            1,
            "container",
        ),
        good=FLASH | THREADS,
    ),
    Case(
        "SGL002",
        "sglang",
        bad=more("offload_group_size: 4"),
        said=Said(
            "warning",
            "each offloaded layer is copied to the GPU whenever it runs: 3.3 tokens a second were measured",
            "vLLM's uva backend reads the experts in place",
            28,
            25,
            "engine.options.offload_group_size",
        ),
        good=more("offload_group_size: -1"),
    ),
    Case(
        "SGL003",
        "sglang",
        bad=more("cuda_graph_bs_decode: [1, 2, 64]", "max_running_requests: 16"),
        said=Said(
            "warning",
            "graphs of up to 64 sequences never run: max_running_requests is 16",
            "write 16 in both",
            28,
            5,
            "engine.options.cuda_graph_bs_decode",
        ),
        good=more("cuda_graph_bs_decode: [1, 2, 16]", "max_running_requests: 16"),
    ),
    Case(
        "SGL003",
        "sglang",
        bad=more("cuda_graph_max_bs_decode: 8", "max_running_requests: 16"),
        said=Said(
            "warning",
            "graphs of up to 8 sequences leave batches of up to 16 without one: max_running_requests is 16",
            "write 16 in both",
            28,
            5,
            "engine.options.cuda_graph_max_bs_decode",
        ),
        good=more("cuda_graph_max_bs_decode: 16"),
    ),
    Case(
        "SGL004",
        "sglang",
        bad={"    model_path: /model\n": "    model_tag: /model\n"},
        said=Said(
            "error",
            "`python3 -m sglang.launch_server` does not accept a bare model",
            "write `model_path:`",
            25,
            5,
            "engine.options.model_tag",
        ),
        good={
            "    model_path: /model\n": "    model_tag: /model\n",
            "[python3, -m, sglang.launch_server]": "[sglang, serve]",
        },
    ),
    Case(
        "SGL005",
        "sglang",
        bad=more("speculative_algorithm: DFLASH"),
        said=Said(
            "error",
            "DFLASH needs a draft model, but speculative_draft_model_path is not set",
            "add `speculative_draft_model_path: /draft`",
            28,
            5,
            "engine.options.speculative_algorithm",
        ),
        good=DRAFTED | more("speculative_algorithm: DFLASH", "speculative_draft_model_path: /draft"),
    ),
    Case(
        "SGL005",
        "sglang",
        bad=DRAFTED | more("speculative_draft_model_path: /draft"),
        said=Said(
            "warning",
            "a draft model is set, but no speculative_algorithm uses it",
            "add speculative_algorithm",
            30,
            5,
            "engine.options.speculative_draft_model_path",
        ),
        good=more("speculative_algorithm: DSPARK"),
    ),
    Case(
        "SGL006",
        "sglang",
        bad=more("speculative_algorithm: EAGEL3"),
        said=Said(
            "warning", "SGLang has no algorithm EAGEL3", "write EAGLE3", 28, 28, "engine.options.speculative_algorithm"
        ),
        good=more("speculative_algorithm: eagle3"),
    ),
    Case(
        "SGL007",
        "sglang",
        bad=DEEPSEEK | {"context_length: 65536": "context_length: 2097152"},
        said=Said(
            "error",
            "context_length is 2097152, but the model supports 1048576",
            "write 1048576",
            26,
            21,
            "engine.options.context_length",
        ),
        good=DEEPSEEK | {"context_length: 65536": "context_length: 1048576"},
    ),
    Case(
        "SGL008",
        "sglang",
        bad={"context_length: 65536": "context_length: 1M"},
        said=Said(
            "note",
            "context_length 1M is 1,000,000 tokens to SGLang",
            "write the number, or 1Mi",
            26,
            21,
            "engine.options.context_length",
        ),
        good={"context_length: 65536": "context_length: 1Mi"},
    ),
    Case(
        "SGL009",
        "sglang",
        bad={LAST: f'{LAST}  extra_args: [--quince_mode, "3"]\nlint: {{ignore: {{ARG004: on purpose}}}}\n'},
        said=Said(
            "error",
            "SGLang's parser does not accept `--quince_mode`",
            "write it with dashes",
            28,
            16,
            "engine.extra_args.0",
        ),
        good={LAST: f'{LAST}  extra_args: [--quince-mode, "3"]\nlint: {{ignore: {{ARG004: on purpose}}}}\n'},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)


def test_both_offloaders(tmp_path: Path) -> None:
    found = lint(tmp_path, changed(SGLANG, more("offload_group_size: 4", "cpu_offload_gb: 8")))
    assert [(one.code, one.line, one.hint) for one in found] == [
        ("SGL002", 28, "vLLM's uva backend reads the experts in place"),
        ("SGL002", 28, "remove cpu_offload_gb"),
    ]


def test_parsers_go_by_sglang_s_names(tmp_path: Path) -> None:
    wrong = changed(SGLANG, DEEPSEEK | {LAST: f"    reasoning_parser: glm45\n{LAST}"})
    assert [(one.code, one.hint) for one in lint(tmp_path, wrong)] == [("PRS004", "write deepseek-v41")]
    none = changed(SGLANG, DEEPSEEK | {LAST: LAST})
    assert [(one.code, one.hint) for one in lint(tmp_path, none)] == [
        ("PRS003", "add `reasoning_parser: deepseek-v41`")
    ]


def test_published_ports_do_not_reach_sglang_s_own_address(tmp_path: Path) -> None:
    bridged = {"  network: host\n": '  ports: ["30778:30778"]\n'}
    found = lint(tmp_path, changed(SGLANG, bridged))
    assert [(one.code, one.hint) for one in found] == [("PRT005", "add host: 0.0.0.0")]
    assert lint(tmp_path, changed(SGLANG, bridged | more("host: 0.0.0.0"))) == []
