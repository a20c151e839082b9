"""Logs of boots that fail: what the line that names the cause says, and the lines around it."""

from dataclasses import dataclass, field

from gb300serve.boot.events import ReceiptValue
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from tests.boot.logs import Log, diagnosed


@dataclass(frozen=True)
class Case:
    reason: Reason
    lines: list[str]
    line: int
    values: dict[str, ReceiptValue] = field(default_factory=dict)
    phase: Phase = Phase.STARTING
    state: str = "failed"


def argparse(text: str) -> list[str]:
    return [
        "With `vllm serve`, you should provide the model as a positional argument",
        "usage: vllm serve [model_tag] [options]",
        f"vllm serve: error: {text}",
    ]


def config(text: str, *, arguments: str = "'port': 31007") -> list[str]:
    """The server's own process refuses the configuration: `text` is on line 5."""
    return [
        *Log().arguments(arguments).lines,
        "Traceback (most recent call last):",
        '  File "/opt/vllm/entrypoints/cli/main.py", line 99, in main',
        "    args.dispatch_function(args)",
        text,
    ]


def pydantic(text: str, field_name: str = "  Value error, ") -> list[str]:
    """Pydantic names the class on line 5 and says what is wrong on line 6."""
    return [
        *config("pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig"),
        f"{field_name}{text}",
        "    For further information visit https://errors.pydantic.dev/2.12/v/value_error",
    ]


def engine(text: str, log: Log | None = None) -> list[str]:
    """The engine's process fails after 4 lines of the boot: `text` is on line 8."""
    return (log or Log().arguments().engine()).failing(text).lines


LOADING = Log().arguments().engine().loaded().lines  # 9 lines
SIZING = Log().arguments().engine().loaded().sized().lines  # 12 lines


def check(case: Case) -> None:
    diagnosis = diagnosed(case.lines)
    # A boot that serves also has the figures of a good one.
    values = {name: value for name, value in diagnosis.values.items() if case.state == "failed" or name in case.values}
    found = (diagnosis.state, diagnosis.reason, diagnosis.phase, diagnosis.evidence[0].line, values)
    assert found == (case.state, case.reason, case.phase, case.line, case.values)
    assert diagnosis.evidence[0].text == case.lines[case.line - 1]


def name(case: Case) -> str:
    return f"{case.reason.value}-{case.line}"
