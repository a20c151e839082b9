"""What vLLM does to its arguments before argparse sees them."""

import json
from collections.abc import Iterable, Iterator, Sequence

from gb300serve.core.values import Value, compact_json
from gb300serve.engines.base import human_int
from gb300serve.engines.tables import OptionTable


def rewrite(argv: Sequence[str], table: OptionTable) -> list[str]:
    """The arguments as argparse gets them: the model first, dashes for underscores, and dotted keys as JSON at the end.

    The JSON of dotted keys comes last, so it replaces JSON that was given for the same flag.
    """
    plain: list[str] = []
    dotted: dict[str, dict[str, Value]] = {}
    words = iter(_levels(map(_dashed, _model_first(argv)), table))
    for word in words:
        flag, equals, value = word.partition("=")
        if not (word.startswith("-") and "." in flag):
            plain.append(word)
            continue
        top, *keys = flag.split(".")
        _put(dotted.setdefault(top, {}), keys, value if equals else next(words, ""))
    for top, content in dotted.items():
        plain += [top, compact_json(content)]
    return plain


def _model_first(argv: Sequence[str]) -> Sequence[str]:
    """`--model X` as a positional argument at the front."""
    for index, word in enumerate(argv):
        if word.startswith("--model="):
            return (word.removeprefix("--model="), *argv[:index], *argv[index + 1 :])
        if word == "--model" and index + 1 < len(argv):
            return (argv[index + 1], *argv[:index], *argv[index + 2 :])
    return argv


def _dashed(word: str) -> str:
    """`--a_b.c_d=e_f` as `--a-b.c_d=e_f`."""
    if not word.startswith("--"):
        return word
    flag, equals, value = word.partition("=")
    top, dot, keys = flag.partition(".")
    return top.replace("_", "-") + dot + keys + equals + value


def _levels(words: Iterable[str], table: OptionTable) -> Iterator[str]:
    """`-O3`, `-O=3` and `-O 3` as `--optimization-level 3`."""
    known = table.find("optimization_level") is not None
    for word in words:
        if known and word.startswith("-O") and not word.startswith("-O."):
            yield "--optimization-level"
            if level := word[2:].removeprefix("="):
                yield level
        else:
            yield word


def _put(content: dict[str, Value], keys: Sequence[str], text: str) -> None:
    """`text` below the nested `keys`; a last key that ends in `+` appends the items between commas."""
    *above, last = keys
    for key in above:
        below = content.get(key)
        if not isinstance(below, dict):
            below = content[key] = {}
        content = below
    if last.endswith("+"):
        name = last.removesuffix("+")
        before = content.get(name)
        content[name] = [*(before if isinstance(before, list) else []), *map(_value, text.split(","))]
    else:
        content[last] = _value(text)


def _value(text: str) -> Value:
    """The text as JSON, else as a number with a suffix, else as text."""
    try:
        found: Value = json.loads(text)
    except ValueError:
        try:
            return human_int(text)
        except ValueError:
            return text
    return found
