from pathlib import Path

import pytest

from tests.lint.samples import Case, Said, judge

CASES = (
    Case(
        "EVD001",
        "other",
        bad={
            "status: draft\n": (
                'status: verified\nboot:\n  receipts:\n    - {line: "Application startup complete", missing: fail}\n'
            )
        },
        said=Said(
            "warning",
            "status is verified, but evidence is missing",
            "add `evidence:`, or write experimental",
            5,
            9,
            "status",
        ),
        good={
            "status: draft\n": (
                "status: verified\n"
                "boot:\n"
                "  receipts:\n"
                '    - {line: "Application startup complete", missing: fail}\n'
                "evidence:\n"
                "  - {figure: one stream, value: 41.5, unit: tok/s, workload: prose of 200 tokens, "
                'method: mean of three runs, run: "2026-10-02"}\n'
            )
        },
    ),
    Case(
        "EVD002",
        "other",
        bad={
            "status: draft\n": (
                "status: verified\n"
                "boot:\n"
                "  receipts:\n"
                '    - {line: "Application startup complete", missing: fail}\n'
                "evidence:\n"
                "  - {figure: one stream, value: 41.5, unit: tok/s, workload: n/a, method: mean of "
                'three runs, run: "2026-10-02"}\n'
            )
        },
        said=Said(
            "warning", "evidence.0.workload has no content: `n/a`", "write the workload", 10, 62, "evidence.0.workload"
        ),
        good={},
    ),
    Case(
        "EVD003",
        "other",
        bad={"title: Orchard lane": "title: Orchard lane at 310 tok/s"},
        said=Said("note", "`310 tok/s` is a figure without workload or method", "move it to evidence:", 4, 8, "title"),
        good={"title: Orchard lane": "title: Orchard lane with 310 trees"},
    ),
    Case(
        "EVD004",
        "other",
        bad={
            "status: draft\n": (
                "status: verified\n"
                "evidence:\n"
                "  - {figure: one stream, value: 41.5, unit: tok/s, workload: prose of 200 tokens, "
                'method: mean of three runs, run: "2026-10-02"}\n'
            )
        },
        said=Said(
            "note", "status is verified, but boot.receipts is missing", "add boot.receipts from its log", 5, 9, "status"
        ),
        good={},
    ),
    Case(
        "EVD005",
        "other",
        bad={
            "status: draft\n": (
                "status: verified\n"
                "boot:\n"
                "  receipts:\n"
                '    - {line: "Application startup complete", missing: fail}\n'
                "evidence:\n"
                "  - {figure: one stream, value: 41.5, unit: tok/s, workload: prose of 200 tokens, "
                "method: mean of three runs}\n"
            )
        },
        said=Said("note", "evidence.0 has no run", "add `run:`", 10, 14, "evidence.0.figure"),
        good={},
    ),
    Case(
        "REC001",
        "known",
        bad={"cpu_offload_gb: 70": "cpu_offload_gb: 56"},
        said=Said(
            "error",
            (
                "offload 56 never booted here: 55 left 0.65 GiB of KV cache at 1,048,576 tokens and "
                "0.97; one request of 1,048,576 needs 2.20"
            ),
            "offload more, or raise gpu_memory_utilization; max_model_len 123264 would fit",
            30,
            21,
            "engine.options.cpu_offload_gb",
        ),
        good={"cpu_offload_gb: 70": "cpu_offload_gb: 57"},
    ),
    Case(
        "REC002",
        "known",
        bad={"token_threshold: 6144": "token_threshold: 1024"},
        said=Said(
            "note",
            "a threshold of 2048 made an idle prefill 47 % and prose at ten streams 29 % slower",
            "write 6144, as the verified releases of the lane do",
            40,
            5,
            "engine.options.long_prefill_token_threshold",
        ),
        good={"token_threshold: 6144": "token_threshold: 5120"},
    ),
    Case(
        "REC003",
        "known",
        bad={"    port: 30777\n": "    default_chat_template_kwargs: {reasoning_effort: medium}\n    port: 30777\n"},
        said=Said(
            "note",
            "this model answers reasoning_effort `medium` with HTTP 400",
            "write low, high, xhigh or max",
            44,
            54,
            "engine.options.default_chat_template_kwargs.reasoning_effort",
        ),
        good={"    port: 30777\n": "    default_chat_template_kwargs: {reasoning_effort: high}\n    port: 30777\n"},
    ),
    Case(
        "REC004",
        "known",
        bad={"[[1, 4, 5], [5, 16, 1]]": "[[1, 6, 5], [7, 16, 1]]"},
        said=Said(
            "note",
            ("no recorded boot used these breakpoints: the first one may tune for 75 to 80 minutes"),
            (
                "on record: [[1, 2, 5], [3, 4, 3], [5, 16, 1]]; [[1, 2, 5], [3, 16, 1]]; [[1, 3, 5], [4, 16, 1]]; "
                "[[1, 4, 5], [5, 12, 3], [13, 24, 1]]; [[1, 4, 5], [5, 16, 1]]; [[1, 4, 5], [5, 24, 1]]; "
                "[[1, 4, 5], [5, 32, 1]]; [[1, 8, 5], [9, 24, 3]]"
            ),
            35,
            46,
            "engine.options.speculative_config.num_speculative_tokens_per_batch_size",
        ),
        good={"[[1, 4, 5], [5, 16, 1]]": "[[1, 2, 5], [3, 16, 1]]"},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)
