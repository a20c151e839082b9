from gb300serve.core.diagnostics import Severity
from gb300serve.core.values import Value
from gb300serve.engines.tables import table
from gb300serve.engines.vllm.engine import check_parsers

KNOWN = (table("vllm", "0.29.0"), table("vllm", "0.30.0"))


def told(options: dict[str, Value]) -> list[tuple[tuple[str | int, ...], Severity | None, str, str | None]]:
    return [(found.path, found.severity, found.message, found.hint) for found in check_parsers(options, KNOWN)]


def test_a_tool_parser_that_automatic_choice_needs_is_an_error() -> None:
    assert told({"tool_call_parser": "deepseek_v42", "enable_auto_tool_choice": True}) == [
        (
            ("tool_call_parser",),
            None,
            "tool_call_parser is 'deepseek_v42', which vllm 0.30.0 does not register",
            "write deepseek_v4",
        )
    ]


def test_a_tool_parser_that_nobody_asks_for_is_a_warning() -> None:
    ((_, severity, _, hint),) = told({"tool_call_parser": "zzz"})
    assert severity == "warning"
    assert hint is not None
    assert hint.startswith("one of apertus, ")


def test_a_reasoning_parser_is_always_looked_up() -> None:
    ((path, severity, message, hint),) = told({"reasoning_parser": "deepseek_41"})
    assert (path, severity, hint) == (("reasoning_parser",), None, "write deepseek_v41")
    assert message == "reasoning_parser is 'deepseek_41', which vllm 0.30.0 does not register"


def test_registered_names_and_plugins() -> None:
    assert told({"tool_call_parser": "deepseek_v41", "reasoning_parser": "deepseek_v41"}) == []
    assert told({"reasoning_parser": "none", "tool_call_parser": ""}) == []
    assert told({"tool_call_parser": "own", "tool_parser_plugin": "/w/own.py"}) == []
    assert told({"reasoning_parser": "own", "reasoning_parser_plugin": "/w/own.py"}) == []
