"""The engine arguments as `engine.options` and `extra_args`; compiling these gives equivalent arguments."""

import json
import re
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from gb300serve.core.redaction import holds_secret, is_placeholder, literal_secret
from gb300serve.core.text import suggestion
from gb300serve.engines.base import human_int
from gb300serve.engines.options import POSITIONAL, EngineOption, JsonField
from gb300serve.engines.parse import converter
from gb300serve.engines.registry import ENGINES
from gb300serve.engines.tables import OptionTable, tables_for
from gb300serve.importers.draft import MARK, Draft
from gb300serve.importers.report import (
    JSON_MENDED,
    REFUSED_VALUE,
    REPEATED,
    SPELLING,
    UNKNOWN_OPTION,
    UNSET,
    UnresolvedError,
    shorten,
)
from gb300serve.importers.shell.mend import load_json, parse_fraction
from gb300serve.importers.shell.words import ExpandedWord
from gb300serve.plan.check import SECRET_OPTIONS
from gb300serve.plan.model import secret_placeholder

_SEARCHES = 20
_NUMBER = re.compile(r"-\d+(?:\.\d+)?")


class FlagMatch(NamedTuple):
    """The option of a flag. `keys`: the keys of a dotted flag. `off`: the flag switches the option off."""

    option: EngineOption
    off: bool = False
    keys: str = ""
    abbreviated: bool = False
    has_underscores: bool = False
    """The flag has underscores, which the parser of this engine rejects."""


class Flags:
    """The flags of an engine version, or of all versions if it is not known."""

    def __init__(self, engine: str, version: str | None) -> None:
        choice = tables_for(engine, version)
        self._plain = not ENGINES[engine].parser.rewrites_flags
        self._searched = 0
        self.tables: tuple[OptionTable, ...] = tuple(reversed(choice.tables))

    @cached_property
    def _spelled(self) -> dict[str, EngineOption]:
        """The first table's option counts. If several may apply, a spelling that only some know stays as written."""
        spelled: dict[str, EngineOption] = {}
        tables = Counter[str]()
        for table in self.tables:
            for option in table.options():
                for flag in filter(None, (option.flag, *option.aliases, *option.off)):
                    spelled.setdefault(flag, option)
                    tables[flag] += 1
        everywhere = len(self.tables)
        return {
            flag: option
            for flag, option in spelled.items()
            if tables[flag] == everywhere or flag == option.flag or flag == f"--no-{option.flag[2:]}"
        }

    def __contains__(self, flag: str) -> bool:
        return flag in self._spelled

    def find(self, flag: str) -> FlagMatch | None:
        """The option of a flag, with underscores, dots and abbreviations as the engine parses them."""
        top, dot, keys = (flag, "", "") if self._plain else flag.partition(".")
        has_underscores = self._plain and "_" in top
        if top.startswith("--"):
            top = "--" + top[2:].replace("_", "-")
        option = self._spelled.get(top)
        abbreviated = option is None
        option = option or self._abbreviated(top)
        if option is None or (dot and not option.takes_json):
            return None
        return FlagMatch(option, top in option.off, keys, abbreviated, has_underscores)

    def _abbreviated(self, top: str) -> EngineOption | None:
        if not top.startswith("--") or len(top) < 4:
            return None
        matching = (o for flag, o in self._spelled.items() if flag.startswith(top) and flag not in o.off)
        candidates = {option.key: option for option in matching}
        return next(iter(candidates.values())) if len(candidates) == 1 else None

    def suggest(self, flag: str) -> str | None:
        """The flag most similar to an unknown one; at most _SEARCHES times, because a search takes 2 ms."""
        self._searched += 1
        return None if self._searched > _SEARCHES else suggestion(flag.replace("_", "-"), self._spelled)


def is_flag(word: str) -> bool:
    """Whether the engine reads an argument as a flag; negative numbers and texts with blanks are values."""
    return len(word) > 1 and word[0] == "-" and _NUMBER.fullmatch(word) is None and " " not in word.partition("=")[0]


_NO_SECRETS = frozenset(("", "EMPTY", "None", "none", "null", "dummy"))


def option_value(draft: Draft, key: str, word: ExpandedWord, value: Any) -> Any:
    """The value of an option: `{secret: NAME}` for a secret and for a value that is read from a file at launch."""
    if (name := secret_variable(draft, key, word.text)) is not None:
        return {"secret": draft.option_secret(name, word.text, word.place)}
    if isinstance(value, str):
        return draft.as_written(value, word.place, f"--{key.replace('_', '-')}")
    return value


def argument_value(draft: Draft, flag: str, word: ExpandedWord) -> str:
    """A value in extra_args; a secret is replaced by its name. The flag is unknown, so its name may be enough."""
    name = secret_variable(draft, flag.lstrip("-").replace("-", "_"), word.text, strict=False)
    if name is not None:
        return secret_placeholder(draft.option_secret(name, word.text, word.place))
    return draft.as_written(word.text, word.place, flag or "an argument")


def secret_variable(draft: Draft, key: str, text: str, *, strict: bool = True) -> str | None:
    """The name for the value if it is a secret; `strict`: it must look random, or the option must be known."""
    reference = draft.reference(text)
    secret = key in SECRET_OPTIONS and text not in _NO_SECRETS
    if reference is not None and (secret or reference.kind == "file"):
        return variable_name(key)
    if reference is not None:
        return None
    if is_placeholder(text) and (secret or holds_secret(key)):
        return variable_name(key)
    if secret or literal_secret(key, MARK.sub("", text), strict=strict) is not None:
        return variable_name(key) if text[:1] not in "{[" else None
    return None


def variable_name(key: str) -> str:
    """The name of a secret for the value of an option."""
    name = re.sub(r"[^A-Za-z0-9]", "_", key).upper().strip("_")
    return name if name and not name[0].isdigit() else "SECRET"


_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,30}")
_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


@dataclass(slots=True)
class OptionReader:
    """Reads the arguments of an engine into options."""

    draft: Draft
    flags: Flags
    engine: str
    options: dict[str, Any] = field(default_factory=dict)
    extra_args: list[str] = field(default_factory=list)
    _dotted: dict[str, list[str]] = field(default_factory=dict)

    def read(self, words: Sequence[ExpandedWord]) -> None:
        """Read all arguments after the launcher."""
        at = 0
        while at < len(words):
            word = words[at]
            if not is_flag(word.text):
                self._positional(word)
                at += 1
                continue
            flag, equals, joined = word.text.partition("=")
            end = at + 1
            while not equals and end < len(words) and not is_flag(words[end].text):
                end += 1
            values = [ExpandedWord(joined, word.place)] if equals else list(words[at + 1 : end])
            at = end
            for stray in self._flag(ExpandedWord(flag, word.place), values, joined=bool(equals)):
                self._positional(stray)
        self._merge_dotted()

    def _flag(self, flag: ExpandedWord, values: list[ExpandedWord], *, joined: bool) -> list[ExpandedWord]:
        """Read a flag and the values up to the next flag; returns the values that do not belong to it."""
        if re.match(r"-O[0-9]?$", flag.text) and (level := self.flags.find("--optimization-level")) is not None:
            values = [ExpandedWord(flag.text[2:], flag.place), *values] if flag.text[2:] else values
            return self._set(level, flag, values, joined=joined)
        if (match := self.flags.find(flag.text)) is None:
            return self._unknown(flag, values, joined=joined)
        if match.abbreviated:
            message = f"{flag.text} is an abbreviation of {match.option.flag}"
            self.draft.report.add(SPELLING, message, "write it in full: a new option may make it ambiguous", flag.place)
        if match.has_underscores:
            message = f"{self.engine} rejects {shorten(flag.text, 40)}: its flags have no underscores"
            self.draft.report.add(REFUSED_VALUE, message, f"it was read as {match.option.flag}", flag.place)
        if match.keys:
            return self._dotted_flag(match, flag, values)
        return self._set(match, flag, values, joined=joined)

    def _set(
        self, match: FlagMatch, flag: ExpandedWord, values: list[ExpandedWord], *, joined: bool
    ) -> list[ExpandedWord]:
        option = match.option
        if option.kind == "bool":
            return self._switch(match, flag, values, joined=joined)
        if option.arity == "many":
            converted = [self._value(option, value) for value in values]
            self._put(option.key, converted[0] if len(converted) == 1 else converted or None, flag)
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
        self, match: FlagMatch, flag: ExpandedWord, values: list[ExpandedWord], *, joined: bool
    ) -> list[ExpandedWord]:
        value = _BOOLEANS.get(values[0].text.lower()) if values else None
        if value is None or (not joined and values[0].text in "01"):
            self._put(match.option.key, not match.off, flag)
            return values
        written = shorten(values[0].text, 20)
        message = f"{flag.text} takes no value: the engine rejects `{written}` or reads it as the model"
        self.draft.report.add(REFUSED_VALUE, message, "it was read as intended; remove the value", values[0].place)
        self._put(match.option.key, value != match.off, flag)
        return values[1:]

    def _without_value(self, flag: ExpandedWord) -> list[ExpandedWord]:
        self.draft.report.add(REFUSED_VALUE, f"{flag.text} has no value", "it was kept in extra_args", flag.place)
        self.extra_args.append(flag.text)
        return []

    def _put(self, key: str, value: Any, flag: ExpandedWord) -> None:
        if value is None:
            return
        if key in self.options:
            last = "a secret" if isinstance(value, dict) and "secret" in value else shorten(_written(value), 40)
            message = f"`{flag.text}` is repeated ({key}): the engine uses the last value, {last}"
            hint = "the earlier value was left out"
            self.draft.report.add(REPEATED, message, hint, flag.place, f"engine.options.{key}")
        self.options[key] = value

    def _positional(self, word: ExpandedWord) -> None:
        """An argument without a flag: the model, if none was given."""
        engine = ENGINES[self.engine]
        model_key, written = engine.model_key, shorten(self.draft.report.clean(word.text), 40)
        if POSITIONAL not in self.options and model_key not in self.options:
            key = POSITIONAL if engine.parser.has_positional or not self.options else model_key
            if key == model_key:
                message = f"{engine.title} rejects `{written}`: a model without a flag must be the first argument"
                hint = f"it was read as --{model_key.replace('_', '-')}"
                self.draft.report.add(REFUSED_VALUE, message, hint, word.place)
            self.options[key] = self.draft.redacted(word.text, word.place, "the model")
            return
        reference = self.draft.reference(word.text)
        if reference is not None and reference.kind == "file":
            reason = f"the arguments are in {shorten(reference.name)}, which is read only when the text runs"
            raise UnresolvedError(reason, word.place)
        if reference is not None:
            message = f"${reference.name} is not set by the text: bash reads it as nothing"
            self.draft.report.add(UNSET, message, "it was left out; add its arguments to the recipe", word.place)
            return
        message = f"`{written}` belongs to no option: the engine would reject it"
        self.draft.report.add(UNKNOWN_OPTION, message, "it was kept in extra_args", word.place)
        self.extra_args.append(argument_value(self.draft, "", word))

    def _dotted_flag(self, match: FlagMatch, flag: ExpandedWord, values: list[ExpandedWord]) -> list[ExpandedWord]:
        """`--speculative-config.method mtp`: one key of a JSON option."""
        key = match.option.key
        if key not in self._dotted and isinstance(self.options.get(key), dict):
            message = f"{flag.text} replaces the JSON of {match.option.flag}: the engine uses only the dotted keys"
            self.draft.report.add(REPEATED, message, "write all keys in one place", flag.place)
        value = self.draft.redacted(values[0].text, values[0].place, flag.text) if values else "true"
        self._dotted.setdefault(key, []).extend((f"{match.option.flag}.{match.keys}", value))
        self.options.setdefault(key, {})
        return values[1:]

    def _merge_dotted(self) -> None:
        for key, words in self._dotted.items():
            if (loaded := load_json(ENGINES[self.engine].parser.rewrite(words, self.flags.tables[0])[-1])) is not None:
                match = self.flags.find(words[0].partition(".")[0])
                self.options[key] = _with_booleans(loaded[0], match.option.fields if match else None)

    def _unknown(self, flag: ExpandedWord, values: list[ExpandedWord], *, joined: bool) -> list[ExpandedWord]:
        similar = self.flags.suggest(flag.text)
        hint = f"did you mean {similar}? It was kept in extra_args" if similar else "it was kept in extra_args"
        message = f"{shorten(flag.text, 40)} is not in the option tables of {self.engine}"
        self.draft.report.add(UNKNOWN_OPTION, message, hint, flag.place, "engine.extra_args")
        texts = [argument_value(self.draft, flag.text, value) for value in values]
        self.extra_args += [f"{flag.text}={texts[0]}"] if joined else [flag.text, *texts]
        return []

    def _value(self, option: EngineOption, word: ExpandedWord) -> Any:
        """A value in the type of the option, or text if the engine would reject it."""
        return option_value(self.draft, option.key, word, self._converted(option, word))

    def _converted(self, option: EngineOption, word: ExpandedWord) -> Any:
        text = word.text
        if option.takes_json:
            return self._json(option, word, text) if option.kind != "json-or-text" or text[:1] == "{" else text
        if option.kind == "text" or (option.nullable and text in ("", "None")):
            return text
        try:
            if option.kind == "float":
                return int(text) if _INTEGER.fullmatch(text) else parse_fraction(text)
            if option.kind == "int":
                return int(text)
            return converter(option)(text) if _INTEGER.fullmatch(text) else _suffixed(option, text)
        except (ValueError, ArgumentTypeError):
            self._reject(option, word)
            return text

    def _reject(self, option: EngineOption, word: ExpandedWord) -> None:
        if not self.draft.require(word.text, word.place, option.flag):
            written, path = shorten(self.draft.report.clean(word.text), 40), f"engine.options.{option.key}"
            expected = "a number" if option.kind == "float" else "a whole number"
            message = f"{option.flag} {written}: the engine expects {expected}"
            self.draft.report.add(REFUSED_VALUE, message, "it was kept as written", word.place, path)

    def _json(self, option: EngineOption, word: ExpandedWord, text: str) -> Any:
        flag, loaded = option.flag, load_json(text)
        if loaded is None:
            shape = "list" if option.shape == "list" else "object"
            message = f"{flag}: {shorten(self.draft.report.clean(text), 40)} is not a JSON {shape}"
            self.draft.report.add(REFUSED_VALUE, message, "it was kept as written", word.place)
            return text
        value, damage = loaded
        if damage:
            message = f"{flag}: the engine would reject the JSON: {damage}"
            self.draft.report.add(JSON_MENDED, message, "it was repaired", word.place)
        return value


def _with_booleans(value: Any, fields: Mapping[str, JsonField] | None) -> Any:
    """Dotted keys with the booleans that pydantic reads: `True` in a nested key, and other spellings for a boolean."""
    if not isinstance(value, dict):
        return {"True": True, "False": False}.get(value, value) if isinstance(value, str) else value
    read: dict[str, Any] = {}
    for key, item in value.items():
        kinds = fields[key].kinds if fields is not None and key in fields else frozenset({"any"})
        if isinstance(item, dict):
            read[key] = _with_booleans(item, None)
        elif kinds <= {"bool", "null"} and not isinstance(item, bool):
            read[key] = _BOOLEANS.get(str(item).lower(), item)
        else:
            read[key] = item if "text" in kinds else _with_booleans(item, None)
    return read


def _suffixed(option: EngineOption, text: str) -> Any:
    """A number with a suffix stays as written; other spellings become plain."""
    if option.kind == "si-int":
        return converter(option)(text)
    number = human_int(text) if text.strip().lower() != "auto" else None
    return text if number is None or not re.fullmatch(r"[0-9_+ ]+", text) else number


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)
