from pathlib import Path

import pytest

from tests.lint.samples import KNOWN, OTHER, Case, Said, changed, judge, lint

CASES = (
    Case(
        "SPC001",
        "other",
        bad={
            "    port: 8000\n": (
                "    speculative_config:\n"
                "      method: ngram\n"
                "      num_speculative_tokens: 3\n"
                "      num_speculative_tokens_per_batch_size:\n"
                "        - [1, 8, 3]\n"
                "        - [12, 32, 1]\n"
                "    port: 8000\n"
            )
        },
        said=Said(
            "warning",
            ("num_speculative_tokens_per_batch_size has a gap: batch size 9 to 11 is in no range and keeps 3"),
            "write [9, 32, 1]",
            39,
            11,
            "engine.options.speculative_config.num_speculative_tokens_per_batch_size.1",
        ),
        good={
            "    port: 8000\n": (
                "    speculative_config:\n"
                "      method: ngram\n"
                "      num_speculative_tokens: 3\n"
                "      num_speculative_tokens_per_batch_size: [[9, 32, 1], [1, 8, 3]]\n"
                "    port: 8000\n"
            )
        },
    ),
    Case(
        "SPC002",
        "other",
        bad={
            "    port: 8000\n": (
                "    speculative_config:\n"
                "      method: ngram\n"
                "      num_speculative_tokens: 3\n"
                "      num_speculative_tokens_per_batch_size: [[1, 8, 3], [9, 24, 1]]\n"
                "    port: 8000\n"
            )
        },
        said=Said(
            "warning",
            "num_speculative_tokens_per_batch_size ends at batch size 24, but max_num_seqs is 32",
            "write [9, 32, 1]",
            37,
            58,
            "engine.options.speculative_config.num_speculative_tokens_per_batch_size.1",
        ),
        good={},
    ),
    Case(
        "SPC003",
        "other",
        bad={
            "    port: 8000\n": (
                "    speculative_config:\n"
                "      method: ngram\n"
                "      num_speculative_tokens: 3\n"
                "      num_speculative_tokens_per_batch_size: [[1, 8, 3], [9, 64, 1]]\n"
                "    port: 8000\n"
            )
        },
        said=Said(
            "warning",
            "num_speculative_tokens_per_batch_size covers 64 sequences, but max_num_seqs is 32",
            "end it at 32, or write max_num_seqs: 64",
            37,
            58,
            "engine.options.speculative_config.num_speculative_tokens_per_batch_size.1",
        ),
        good={},
    ),
    Case(
        "SPC004",
        "other",
        bad={
            "    port: 8000\n": (
                "    speculative_config:\n"
                "      method: ngram\n"
                "      num_speculative_tokens: 3\n"
                "      num_speculative_tokens_per_batch_size: [[1, 8, 6], [9, 32, 1]]\n"
                "    port: 8000\n"
            )
        },
        said=Said(
            "warning",
            "6 draft tokens are scheduled, but num_speculative_tokens is 3",
            "write [1, 8, 3]",
            37,
            47,
            "engine.options.speculative_config.num_speculative_tokens_per_batch_size.0",
        ),
        good={},
    ),
    Case(
        "SPC005",
        "known",
        bad={"num_speculative_tokens: 5": "num_speculative_tokens: 8"},
        said=Said(
            "warning",
            "num_speculative_tokens is 8, but the drafter's block is 5",
            "write 5",
            34,
            31,
            "engine.options.speculative_config.num_speculative_tokens",
        ),
        good={},
    ),
    Case(
        "SPC006",
        "known",
        bad={"method: dspark": "method: mtp"},
        said=Said(
            "error",
            "deepseek-ai/DeepSeek-V4.1-Flash has no drafter for method mtp",
            "write dspark",
            33,
            15,
            "engine.options.speculative_config.method",
        ),
        good={},
    ),
    Case(
        "SPC007",
        "other",
        bad={
            "    port: 8000\n": "    speculative_config: {method: eagle3, num_speculative_tokens: 1}\n    port: 8000\n"
        },
        said=Said(
            "error",
            "method eagle3 needs a draft model, but speculative_config has no `model`",
            "add `model: /draft`, the mount of the drafter",
            34,
            5,
            "engine.options.speculative_config",
        ),
        good={
            "    port: 8000\n": (
                "    speculative_config: {method: eagle3, model: /model/draft, "
                "num_speculative_tokens: 1}\n"
                "    port: 8000\n"
            )
        },
    ),
    Case(
        "SPC008",
        "other",
        bad={
            "    port: 8000\n": (
                "    data_parallel_size: 2\n"
                "    speculative_config:\n"
                "      method: ngram\n"
                "      num_speculative_tokens: 3\n"
                "      num_speculative_tokens_per_batch_size: [[1, 8, 3], [9, 32, 1]]\n"
                "    port: 8000\n"
            ),
            "{name: GB300}": "{uuid: [GPU-a, GPU-b]}",
        },
        said=Said(
            "warning",
            "the engine drops the schedule when data_parallel_size is above 1",
            "remove it",
            38,
            7,
            "engine.options.speculative_config.num_speculative_tokens_per_batch_size",
        ),
        good={},
    ),
    Case(
        "SPC009",
        "known",
        bad={"    port: 30777\n": "    cudagraph_capture_sizes: [1, 2, 4, 8, 16]\n    port: 30777\n"},
        said=Said(
            "warning",
            (
                "the largest capture size is 16 (tokens, not sequences): a full batch has 32 tokens "
                "and runs without a graph"
            ),
            "add 24, 32",
            44,
            30,
            "engine.options.cudagraph_capture_sizes",
        ),
        good={"    port: 30777\n": "    cudagraph_capture_sizes: [6, 12, 18, 24, 32]\n    port: 30777\n"},
    ),
    Case(
        "SPC010",
        "other",
        bad={
            "    port: 8000\n": "    speculative_config: {method: ngram, num_speculative_tokens: 4}\n    port: 8000\n"
        },
        said=Said(
            "note",
            "4 tokens are drafted at every batch size",
            "add a schedule (num_speculative_tokens_per_batch_size) that drafts less at many streams",
            34,
            65,
            "engine.options.speculative_config.num_speculative_tokens",
        ),
        good={
            "    port: 8000\n": "    speculative_config: {method: ngram, num_speculative_tokens: 1}\n    port: 8000\n"
        },
    ),
    Case(
        "SPC011",
        "known",
        bad={"  mounts:\n": '  env: {VLLM_USE_V2_MODEL_RUNNER: "0"}\n  mounts:\n'},
        said=Said(
            "error",
            "model runner V1 does not support dspark",
            "remove the variable",
            20,
            35,
            "container.env.VLLM_USE_V2_MODEL_RUNNER",
        ),
        good={"  mounts:\n": '  env: {VLLM_USE_V2_MODEL_RUNNER: "1"}\n  mounts:\n'},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)


def test_a_length_that_0_30_refuses(tmp_path: Path) -> None:
    build = {"0.1.dev20904+g179dd0fa9": "0.30.0"}
    text = changed(KNOWN, {"num_speculative_tokens: 5": "num_speculative_tokens: 7", **build})
    found = {(d.code, d.severity) for d in lint(tmp_path, text)}
    assert ("SPC005", "error") in found
    text = changed(KNOWN, {"num_speculative_tokens: 5": "num_speculative_tokens: 10", **build})
    assert ("SPC005", "warning") in {(d.code, d.severity) for d in lint(tmp_path, text)}


def test_runner_v2_is_reported_to_ignore_the_schedule(tmp_path: Path) -> None:
    text = changed(KNOWN, {"0.1.dev20904+g179dd0fa9": "0.32.0"})
    assert [(d.code, d.severity) for d in lint(tmp_path, text)] == [("OFF007", "warning"), ("SPC008", "warning")]


@pytest.mark.parametrize(
    ("option", "code"),
    [
        ("max_cudagraph_capture_size: 16", "SPC009"),
        ("cudagraph_capture_sizes: [1, 2, 4, 8, 16, 24]", "SPC009"),
        ("compilation_config: {cudagraph_capture_sizes: [8, 16]}", "SPC009"),
        ("cudagraph_capture_sizes: [8, 32]", None),
        ("max_cudagraph_capture_size: 48", None),
    ],
)
def test_graphs_that_cover_a_full_batch(tmp_path: Path, option: str, code: str | None) -> None:
    found = lint(tmp_path, changed(KNOWN, {"    port: 30777\n": f"    {option}\n    port: 30777\n"}))
    assert [(d.code, d.severity) for d in found] == ([(code, "warning")] if code else [])


def test_graphs_below_the_seats_without_drafts_are_a_trade_off(tmp_path: Path) -> None:
    text = changed(OTHER, {"    port: 8000\n": "    max_cudagraph_capture_size: 16\n    port: 8000\n"})
    assert [(d.code, d.severity) for d in lint(tmp_path, text)] == [("SPC009", "note")]
