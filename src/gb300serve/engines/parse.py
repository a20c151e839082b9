"""The reverse of `argv`: the engine's words read as its own parser reads them, refusals in that parser's words.

The parser is argparse itself, filled from the table, because the engines' are: abbreviations, `--a=b`, several words
after one flag and the texts of its refusals come out the same. What an engine does to the words before argparse sees
them (the model's place, underscores, dotted JSON keys, `-O3`) stands in `spelling`. `--config FILE` is not opened.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, NoReturn

from gb300serve.core.errors import CompileError
from gb300serve.core.values import Value
from gb300serve.engines.common import MODEL_KEYS, POSITIONAL
from gb300serve.engines.convert import converter
from gb300serve.engines.option import EngineOption
from gb300serve.engines.spelling import model_named, respelled
from gb300serve.engines.table import OptionTable


class ArgumentDialect(NamedTuple):
    """What differs between the engines: the words' first treatment, and the names of the parsers."""

    respelled: Callable[[Sequence[str], OptionTable], Sequence[str]]
    prog: str
    root: str
    """The parser that complains of words left over."""


DIALECTS = {
    "vllm": ArgumentDialect(respelled, "vllm serve", "vllm"),
    "sglang": ArgumentDialect(model_named, "sglang serve", "sglang serve"),
}
_SHAPES: dict[str, dict[str, Any]] = {
    "many": {"nargs": "+"},
    "optional": {"nargs": "?", "const": True},
    "append": {"action": "append"},
}


class ArgumentRefusedError(CompileError):
    """The engine's parser refuses the words: it prints a usage, this line, and exits with 2."""

    engine_exit_code: ClassVar[int] = 2

    def __init__(self, prog: str, reason: str) -> None:
        super().__init__(f"{prog}: error: {reason}")
        self.reason = reason


class _Parser(argparse.ArgumentParser):
    """argparse that raises where it would print and exit."""

    root = ""

    def error(self, message: str) -> NoReturn:
        # Words left over are the root parser's complaint; everything else is said by the one of `serve`.
        raise ArgumentRefusedError(self.root if message.startswith("unrecognized arguments") else self.prog, message)


class _Switch(argparse.Action):
    """A boolean: true by its flag and aliases, false by its off flags."""

    def __init__(self, off: Sequence[str], **words: Any) -> None:
        super().__init__(nargs=0, **words)
        self.off = off

    def __call__(self, _parser: object, namespace: object, _values: object, flag: str | None = None) -> None:
        setattr(namespace, self.dest, flag not in self.off)


def parse_argv(argv: Sequence[str], table: OptionTable) -> Mapping[str, Value]:
    """The options that the engine's words say, as a recipe would write them, in the order in which they were said.

    The model stands under `model` (SGLang: `model_path`) however it was said. Numbers keep their spelling (`1M` stays
    text). Raises ArgumentRefusedError where the engine would exit with 2.
    """
    dialect = DIALECTS[table.engine]
    said = _parser(table).parse_args(dialect.respelled(argv, table))
    found: dict[str, Value] = {
        MODEL_KEYS[table.engine] if key == POSITIONAL else key: value for key, value in vars(said).items()
    }
    return found


@lru_cache(maxsize=8)
def _parser(table: OptionTable) -> argparse.ArgumentParser:
    dialect = DIALECTS[table.engine]
    parser = _Parser(prog=dialect.prog, add_help=False, argument_default=argparse.SUPPRESS)
    parser.root = dialect.root
    for option in table.options():
        if not option.positional or table.engine == "vllm":  # the parser of SGLang has no positional
            _add(parser, option)
    return parser


def _add(parser: argparse.ArgumentParser, option: EngineOption) -> None:
    if option.positional:
        parser.add_argument(option.key, nargs="?")
    elif option.kind == "bool":
        flags = (option.flag, *option.aliases, *option.off)
        parser.add_argument(*flags, dest=option.key, action=_Switch, off=option.off)
    else:
        shape = {**_SHAPES.get(option.arity, {}), "choices": option.choices or None}
        parser.add_argument(option.flag, *option.aliases, dest=option.key, type=converter(option), **shape)
