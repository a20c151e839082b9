"""The engine's words as `engine.options`, so that compiling them says the same; the rest as `extra_args`."""

import json
import re
from argparse import ArgumentTypeError
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from gb300serve.core.redaction import literal_secret
from gb300serve.core.text import suggestion
from gb300serve.engines.base import human_int
from gb300serve.engines.options import POSITIONAL, EngineOption
from gb300serve.engines.parse import converter
from gb300serve.engines.registry import ENGINES
from gb300serve.engines.tables import OptionTable, tables_for
from gb300serve.importers.draft import MARK, Draft
from gb300serve.importers.report import JSON_MENDED, REFUSED_VALUE, REPEATED, SPELLING, UNKNOWN_OPTION, shown
from gb300serve.importers.shell.mend import fraction, loads
from gb300serve.importers.shell.words import ExpandedWord
from gb300serve.plan.model import secret_word
from gb300serve.plan.secrets import SECRET_OPTIONS

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
        self._plain = not ENGINES[engine].parser.rewrites_flags
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


_NO_SECRETS = frozenset(("", "EMPTY", "None", "none", "null", "dummy"))


def option_value(draft: Draft, key: str, word: ExpandedWord, value: Any) -> Any:
    """The value of an option: `{secret: NAME}` for a secret and for what is read from a file at launch."""
    name = secret_name(draft, key, word.text)
    if name is not None:
        return {"secret": draft.for_option(name, word.text, word.place)}
    if isinstance(value, str):
        return draft.plain(value, word.place, f"--{key.replace('_', '-')}")
    return value


def word_value(draft: Draft, flag: str, word: ExpandedWord) -> str:
    """A word of extra_args; a secret stands there by its name. No table knows the flag: its name alone may convict."""
    name = secret_name(draft, flag.lstrip("-").replace("-", "_"), word.text, strict=False)
    if name is not None:
        return secret_word(draft.for_option(name, word.text, word.place))
    return draft.plain(word.text, word.place, flag or "a word")


def secret_name(draft: Draft, key: str, text: str, *, strict: bool = True) -> str | None:
    """The variable to hold the value in, when it is a secret; `strict`: one that looks random, or of a known option."""
    reference = draft.reference(text)
    secret = key in SECRET_OPTIONS and text not in _NO_SECRETS
    if reference is not None and (secret or reference.kind == "file"):
        return _variable(key)
    if reference is None and (secret or literal_secret(key, MARK.sub("", text), strict=strict) is not None):
        return _variable(key) if text[:1] not in "{[" else None
    return None


def _variable(key: str) -> str:
    plain = "".join(sign if sign.isalnum() and sign.isascii() else "_" for sign in key).upper().strip("_")
    return plain if plain and not plain[0].isdigit() else "SECRET"


_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,30}")
_SWITCHED = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


@dataclass(slots=True)
class Options:
    """What the words said."""

    draft: Draft
    flags: Flags
    engine: str
    options: dict[str, Any] = field(default_factory=dict)
    extra_args: list[str] = field(default_factory=list)
    _dotted: dict[str, list[str]] = field(default_factory=dict)

    def read(self, words: Sequence[ExpandedWord]) -> None:
        """All of the engine's words, behind the launcher."""
        at = 0
        while at < len(words):
            word = words[at]
            if not is_flag(word.text):
                self._bare(word)
                at += 1
                continue
            flag, equals, joined = word.text.partition("=")
            end = at + 1
            while not equals and end < len(words) and not is_flag(words[end].text):
                end += 1
            values = [ExpandedWord(joined, word.place)] if equals else list(words[at + 1 : end])
            at = end
            for stray in self._flag(ExpandedWord(flag, word.place), values, joined=bool(equals)):
                self._bare(stray)
        self._merge_dotted()

    def _flag(self, flag: ExpandedWord, values: list[ExpandedWord], *, joined: bool) -> list[ExpandedWord]:
        """One flag with the words up to the next one; the words that are not its own come back."""
        if re.match(r"-O[0-9]?$", flag.text) and (level := self.flags.find("--optimization-level")) is not None:
            values = [ExpandedWord(flag.text[2:], flag.place), *values] if flag.text[2:] else values
            return self._said(level, flag, values, joined=joined)
        meant = self.flags.find(flag.text)
        if meant is None:
            return self._unknown(flag, values, joined=joined)
        if meant.short:
            message = f"{flag.text} is short for {meant.option.flag}"
            self.draft.report.say(SPELLING, message, "an option added later could make it ambiguous", flag.place)
        if not meant.dashed:
            message = f"{shown(flag.text, 40)}: the parser of {self.engine} takes no underscores, and refuses it"
            self.draft.report.say(REFUSED_VALUE, message, f"it was read as {meant.option.flag}", flag.place)
        if meant.below:
            return self._below(meant, flag, values)
        return self._said(meant, flag, values, joined=joined)

    def _said(
        self, meant: Meant, flag: ExpandedWord, values: list[ExpandedWord], *, joined: bool
    ) -> list[ExpandedWord]:
        option = meant.option
        if option.kind == "bool":
            return self._switch(meant, flag, values, joined=joined)
        if option.arity == "many":
            said = [self._value(option, one) for one in values]
            self._put(option.key, said[0] if len(said) == 1 else said or None, flag)
            return [] if values else self._without_value(flag)
        if option.arity == "optional" and not values:
            self._put(option.key, value=True, flag=flag)
            return []
        if not values:
            return self._without_value(flag)
        if option.arity == "append":
            self.options.setdefault(option.key, []).append(self._value(option, values[0]))
        else:
            self._put(option.key, self._value(option, values[0]), flag)
        return values[1:]

    def _switch(
        self, meant: Meant, flag: ExpandedWord, values: list[ExpandedWord], *, joined: bool
    ) -> list[ExpandedWord]:
        said = _SWITCHED.get(values[0].text.lower()) if values else None
        if said is None or (not joined and values[0].text in "01"):
            self._put(meant.option.key, not meant.off, flag)
            return values
        message = (
            f"{flag.text} takes no value: the engine refuses `{shown(values[0].text, 20)}`, or takes it for the model"
        )
        self.draft.report.say(REFUSED_VALUE, message, "it was read as it was meant", values[0].place)
        self._put(meant.option.key, said != meant.off, flag)
        return values[1:]

    def _without_value(self, flag: ExpandedWord) -> list[ExpandedWord]:
        self.draft.report.say(
            REFUSED_VALUE, f"{flag.text} has no value", "it stands in extra_args as it was said", flag.place
        )
        self.extra_args.append(flag.text)
        return []

    def _put(self, key: str, value: Any, flag: ExpandedWord) -> None:
        if value is None:
            return
        if key in self.options:
            last = "a secret" if isinstance(value, dict) and "secret" in value else shown(_written(value), 40)
            message = f"`{flag.text}` stands here again ({key}): the engine keeps the last value, {last}"
            self.draft.report.say(
                REPEATED, message, "the earlier one was left out", flag.place, f"engine.options.{key}"
            )
        self.options[key] = value

    def _bare(self, word: ExpandedWord) -> None:
        """A word that belongs to no flag: the model, where none was named."""
        engine = ENGINES[self.engine]
        named = engine.model_key
        if POSITIONAL not in self.options and named not in self.options:
            key = POSITIONAL if engine.parser.has_positional or not self.options else named
            if key == named:
                message = f"`{shown(word.text, 40)}`: {engine.title} accepts a bare model only as the first argument"
                self.draft.report.say(REFUSED_VALUE, message, f"it was read as --{named.replace('_', '-')}", word.place)
            self.options[key] = self.draft.text(word.text, word.place, "the model")
            return
        message = f"`{shown(self.draft.report.clean(word.text), 40)}` belongs to no option: the engine would refuse it"
        self.draft.report.say(UNKNOWN_OPTION, message, "it stands in extra_args as it was said", word.place)
        self.extra_args.append(word_value(self.draft, "", word))

    def _below(self, meant: Meant, flag: ExpandedWord, values: list[ExpandedWord]) -> list[ExpandedWord]:
        """`--speculative-config.method mtp`: one key of a JSON option."""
        key = meant.option.key
        if key not in self._dotted and isinstance(self.options.get(key), dict):
            message = f"{flag.text}: the dotted keys replace the JSON that was given for {meant.option.flag}"
            self.draft.report.say(REPEATED, message, "the engine keeps only them; say all in one place", flag.place)
        value = self.draft.text(values[0].text, values[0].place, flag.text) if values else "true"
        self._dotted.setdefault(key, []).extend((f"{meant.option.flag}.{meant.below}", value))
        self.options.setdefault(key, {})
        return values[1:]

    def _merge_dotted(self) -> None:
        for key, words in self._dotted.items():
            if (found := loads(ENGINES[self.engine].parser.rewrite(words, self.flags.tables[0])[-1])) is not None:
                self.options[key] = found[0]

    def _unknown(self, flag: ExpandedWord, values: list[ExpandedWord], *, joined: bool) -> list[ExpandedWord]:
        meant = self.flags.meant(flag.text)
        hint = f"did you mean {meant}? It" if meant else "it"
        message = f"no option table of {self.engine} knows {shown(flag.text, 40)}"
        self.draft.report.say(
            UNKNOWN_OPTION, message, f"{hint} stands in extra_args as it was said", flag.place, "engine.extra_args"
        )
        texts = [word_value(self.draft, flag.text, one) for one in values]
        self.extra_args += [f"{flag.text}={texts[0]}"] if joined else [flag.text, *texts]
        return []

    def _value(self, option: EngineOption, word: ExpandedWord) -> Any:
        """A value in the type that the option has; text where the engine would refuse it."""
        return option_value(self.draft, option.key, word, self._converted(option, word))

    def _converted(self, option: EngineOption, word: ExpandedWord) -> Any:
        text = word.text
        if option.takes_json:
            return self._json(option, word, text) if option.kind != "json-or-text" or text[:1] == "{" else text
        if option.kind == "text" or (option.nullable and text in ("", "None")):
            return text
        try:
            if option.kind == "float":
                return int(text) if _INTEGER.fullmatch(text) else fraction(text)
            if option.kind == "int":
                return int(text)
            return converter(option)(text) if _INTEGER.fullmatch(text) else _suffixed(option, text)
        except (ValueError, ArgumentTypeError):
            self._refused(option, word)
            return text

    def _refused(self, option: EngineOption, word: ExpandedWord) -> None:
        if self.draft.reference(word.text) is None:
            message = (
                f"{option.flag} {shown(self.draft.report.clean(word.text), 40)}: the engine takes {option.kind} here"
            )
            self.draft.report.say(
                REFUSED_VALUE, message, "it is kept as it was said", word.place, f"engine.options.{option.key}"
            )

    def _json(self, option: EngineOption, word: ExpandedWord, text: str) -> Any:
        flag, found = option.flag, loads(text)
        if found is None:
            wanted = "list" if option.shape == "list" else "object"
            message = f"{flag}: {shown(self.draft.report.clean(text), 40)} is no JSON {wanted}"
            self.draft.report.say(REFUSED_VALUE, message, "it is kept as it was said", word.place)
            return text
        value, mended = found
        if mended:
            message = f"{flag}: the JSON is damaged: {mended}, and the engine would refuse it"
            self.draft.report.say(JSON_MENDED, message, "read as it was meant", word.place)
        return value


def _suffixed(option: EngineOption, text: str) -> Any:
    """A whole number with a suffix stays as it was written; other spellings become plain."""
    if option.kind == "si-int":
        return converter(option)(text)
    number = human_int(text) if text.strip().lower() != "auto" else None
    return text if number is None or not re.fullmatch(r"[0-9_+ ]+", text) else number


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
