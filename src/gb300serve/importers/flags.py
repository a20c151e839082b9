"""The flags of an engine: which option a word says, in any of the spellings that its parser takes."""

import re
from functools import cached_property
from typing import NamedTuple

from gb300serve.core.text import suggestion
from gb300serve.engines.option import EngineOption
from gb300serve.engines.shipped import tables_for
from gb300serve.engines.table import OptionTable

_SEARCHES = 20
_NUMBER = re.compile(r"-\d+(?:\.\d+)?")


class Meant(NamedTuple):
    """What a flag says. `below`: the keys of a dotted flag. `off`: it switches the option off."""

    option: EngineOption
    off: bool = False
    below: str = ""
    short: bool = False
    """It was abbreviated."""
    dashed: bool = True
    """False: it was said with underscores, which this engine does not take."""


class Flags:
    """The flags of one engine version; of all versions that could be meant where none is known."""

    def __init__(self, engine: str, version: str | None) -> None:
        choice = tables_for(engine, version)
        # vLLM makes dashes of underscores and JSON of dotted flags before argparse; SGLang's parser is argparse alone.
        self._plain = engine == "sglang"
        self._searched = 0
        self.tables: tuple[OptionTable, ...] = tuple(reversed(choice.tables))

    @cached_property
    def _spelled(self) -> dict[str, EngineOption]:
        found: dict[str, EngineOption] = {}
        for table in self.tables:
            for option in table.options():
                for flag in filter(None, (option.flag, *option.aliases, *option.off)):
                    found.setdefault(flag, option)
        return found

    def __contains__(self, flag: str) -> bool:
        return flag in self._spelled

    def find(self, flag: str) -> Meant | None:
        """The option of a flag: underscores, dots and abbreviations as the engine's parser takes them."""
        top, dot, keys = (flag, "", "") if self._plain else flag.partition(".")
        dashed = not self._plain or "_" not in top
        if top.startswith("--"):
            top = "--" + top[2:].replace("_", "-")
        option = self._spelled.get(top)
        short = option is None
        if option is None:
            option = self._abbreviated(top)
        if option is None or (dot and not option.takes_json):
            return None
        return Meant(option, off=top in option.off, below=keys, short=short, dashed=dashed)

    def _abbreviated(self, top: str) -> EngineOption | None:
        if not top.startswith("--") or len(top) < 4:
            return None
        begun = {
            option.key: option
            for flag, option in self._spelled.items()
            if flag.startswith(top) and flag not in option.off
        }
        return next(iter(begun.values())) if len(begun) == 1 else None

    def meant(self, flag: str) -> str | None:
        """The flag that an unknown one was probably meant to be; looked for a few times only (a search takes 2 ms)."""
        self._searched += 1
        if self._searched > _SEARCHES:
            return None
        return suggestion(flag.replace("_", "-"), self._spelled)


def is_flag(word: str) -> bool:
    """Whether the engine's parser takes a word for a flag; negative numbers are values."""
    return len(word) > 1 and word[0] == "-" and _NUMBER.fullmatch(word) is None
