"""The parsers of tool calls and of reasoning: names that the engine's build registers."""

from collections.abc import Iterable, Iterator

from gb300serve.core.text import suggestion
from gb300serve.engines.base import Options
from gb300serve.engines.narrow import text
from gb300serve.engines.problem import Problem
from gb300serve.engines.table import OptionTable


def check_parsers(options: Options, tables: Iterable[OptionTable]) -> Iterator[Problem]:
    """Names that no table knows. A plugin registers names of its own, so nothing is said beside one."""
    known = tuple(tables)
    if "tool_parser_plugin" not in options:
        names = sorted({name for table in known for name in table.tool_call_parsers})
        # Alone, without automatic tool choice, the engine takes any name and ignores it.
        grave = options.get("enable_auto_tool_choice") is True
        yield from _check_name(options, "tool_call_parser", names, known[-1].version, grave=grave)
    if "reasoning_parser_plugin" not in options:
        names = sorted({name for table in known for name in table.reasoning_parsers})
        yield from _check_name(options, "reasoning_parser", [*names, "none"], known[-1].version, grave=True)


def _check_name(options: Options, key: str, names: list[str], version: str, *, grave: bool) -> Iterator[Problem]:
    said = text(options.get(key))
    if not said or said in names:
        return
    close = suggestion(said, names)
    hint = f"write {close}" if close else f"one of {', '.join(names)}"
    message = f"{key} is '{said}', which vllm {version} does not register"
    yield Problem((key,), "OPT012", message, hint, None if grave else "warning")
