"""Brace expansion, which bash does before anything else: `a{b,c}` is two words, `{1..3}` three."""

import re
from itertools import chain

from gb300serve.importers.report import UnresolvedError
from gb300serve.importers.shell.words import Part, Word

MAX_WORDS = 1000
"""Words that one may become."""
_SEQUENCE = re.compile(r"(?:(-?\d{1,9})\.\.(-?\d{1,9})|([A-Za-z])\.\.([A-Za-z]))(?:\.\.(-?\d{1,9}))?")
_MOST_BRACES = 200
_LONGEST_SEQUENCE = 40  # {-999999999..-999999999..-999999999}

_Items = tuple[Part, ...]
"""The parts of a word, every unquoted sign one of its own."""


def expand_braces(word: Word) -> tuple[Word, ...]:
    """The words that bash makes of one, itself where it has no braces to expand. Raises Stop above `MOST` words."""
    bare = "".join(part.text for part in word.parts if _unquoted(part))
    if "{" not in bare or not ("," in bare or ".." in bare):
        return (word,)
    if bare.count("{") > _MOST_BRACES:
        raise UnresolvedError("more braces stand here than any command has", word.place)
    items = tuple(chain.from_iterable(map(_signs, word.parts)))
    found = _expanded(items, word)
    return (word,) if found == [items] else tuple(Word(_joined(items), word.place) for items in found)


def _unquoted(part: Part) -> bool:
    return part.kind == "text" and not part.quoted


def _signs(part: Part) -> list[Part]:
    return [part._replace(text=sign) for sign in part.text] if _unquoted(part) else [part]


def _is(item: Part, sign: str) -> bool:
    return _unquoted(item) and item.text == sign


def _expanded(items: _Items, word: Word, depth: int = 0) -> list[_Items]:
    if depth > MAX_WORDS // 10:
        raise UnresolvedError("braces are nested too deeply", word.place)
    found = _first_pair(items)
    if found is None:
        return [items]
    start, end = found
    alternatives = _alternatives(items[start + 1 : end])
    if alternatives is None and end + 1 == len(items):
        return [items]
    behind = _expanded(items[end + 1 :], word, depth + 1)
    if alternatives is None:
        return [(*items[: end + 1], *rest) for rest in behind]
    middles = list(chain.from_iterable(_expanded(each, word, depth + 1) for each in alternatives))
    if len(middles) * len(behind) > MAX_WORDS:
        raise UnresolvedError(f"the braces stand for more than {MAX_WORDS:,} words", word.place)
    return [(*items[:start], *middle, *rest) for middle in middles for rest in behind]


def _first_pair(items: _Items) -> tuple[int, int] | None:
    """The first brace that has a closing one. `{}` at the beginning of a word is no brace to bash (find's `{}`)."""
    for start, item in enumerate(items):
        if _is(item, "{") and not (start == 0 and len(items) > 1 and _is(items[1], "}")):
            end = _closing(items, start)
            if end is not None:
                return start, end
    return None


def _closing(items: _Items, start: int) -> int | None:
    """A brace closes only behind a comma or `..` of its own; one before that stands for itself."""
    level = divided = 0
    for at in range(start + 1, len(items)):
        if _is(items[at], "{"):
            level += 1
        elif _is(items[at], "}") and level:
            level -= 1
        elif level:
            continue
        elif _is(items[at], "}") and divided:
            return at
        else:
            divided += _is(items[at], ",") or _is_range(items[at : at + 3])
    return None


def _is_range(items: _Items) -> bool:
    return len(items) == 3 and _is(items[0], ".") and _is(items[1], ".") and not _is(items[2], "}")


def _alternatives(inner: _Items) -> list[_Items] | None:
    """What stands between the commas, or what a sequence counts; None where bash leaves the braces as they are.

    A comma anywhere, in inner braces too, makes bash take the outer ones away even where nothing divides them.
    """
    if not any("," in item.text for item in inner):
        short = len(inner) <= _LONGEST_SEQUENCE and all(map(_unquoted, inner))
        return _counted("".join(item.text for item in inner)) if short else None
    found, begin, level = list[_Items](), 0, 0
    for at, item in enumerate(inner):
        level += _is(item, "{") - (level > 0 and _is(item, "}"))
        if level == 0 and _is(item, ","):
            found.append(inner[begin:at])
            begin = at + 1
    return [*found, inner[begin:]]


def _counted(text: str) -> list[_Items] | None:
    found = _SEQUENCE.fullmatch(text)
    if found is None:
        return None
    first, last, low, high, step = found.groups()
    begin, end = (int(first), int(last)) if first is not None else (ord(low), ord(high))
    stride = abs(int(step or 1)) or 1
    if abs(end - begin) // stride >= MAX_WORDS:
        raise UnresolvedError(f"the braces stand for more than {MAX_WORDS:,} words", None)
    numbers = range(begin, end + (1 if end >= begin else -1), stride if end >= begin else -stride)
    if first is None:
        return [(Part("text", chr(number), quoted=False),) for number in numbers]
    padded = any(re.match(r"-?0\d", each) for each in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [(Part("text", f"{number:0{width}d}", quoted=False),) for number in numbers]


def _joined(items: _Items) -> _Items:
    """Signs that stand side by side as one part again."""
    found: list[Part] = []
    for item in items:
        if found and _unquoted(item) and _unquoted(found[-1]):
            found[-1] = found[-1]._replace(text=found[-1].text + item.text)
        else:
            found.append(item)
    return tuple(found)
