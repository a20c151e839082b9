from pathlib import Path

import pytest

from tests.lint.samples import Case, Said, judge

CASES = (
    Case(
        "PRS001",
        "known",
        bad={"    tool_call_parser: deepseek_v41\n": ""},
        said=Said(
            "error",
            "enable_auto_tool_choice needs a tool_call_parser",
            "add `tool_call_parser: deepseek_v41`",
            42,
            5,
            "engine.options.enable_auto_tool_choice",
        ),
        good={},
    ),
    Case(
        "PRS002",
        "known",
        bad={"    enable_auto_tool_choice: true\n": ""},
        said=Said(
            "warning",
            "tool_call_parser deepseek_v41 is not used without enable_auto_tool_choice",
            "add `enable_auto_tool_choice: true`",
            41,
            5,
            "engine.options.tool_call_parser",
        ),
        good={},
    ),
    Case(
        "PRS003",
        "other",
        bad={"repo: acme/Quince-9B": "repo: acme/Qwen3-9B-FP8"},
        said=Said(
            "warning",
            "acme/Qwen3-9B-FP8 is a reasoning model, but reasoning_parser is not set",
            "add `reasoning_parser: qwen3`",
            27,
            3,
            "engine.options",
        ),
        good={"repo: acme/Quince-9B": "repo: acme/Qwen3-Coder-9B"},
    ),
    Case(
        "PRS004",
        "known",
        bad={"reasoning_parser: deepseek_v41": "reasoning_parser: deepseek_r1"},
        said=Said(
            "warning",
            "deepseek-ai/DeepSeek-V4.1-Flash needs deepseek_v41, not deepseek_r1",
            "write deepseek_v41",
            42,
            23,
            "engine.options.reasoning_parser",
        ),
        good={},
    ),
    Case(
        "PRS005",
        "known",
        bad={"    tool_call_parser: deepseek_v41\n": "", "    enable_auto_tool_choice: true\n": ""},
        said=Said(
            "note",
            "tool calls are returned as text: tool_call_parser is not set",
            "add `tool_call_parser: deepseek_v41` and `enable_auto_tool_choice: true`",
            25,
            3,
            "engine.options",
        ),
        good={},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.code)
def test_one_finding_and_none_in_the_neighbour(tmp_path: Path, case: Case) -> None:
    judge(case, tmp_path)
