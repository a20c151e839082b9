"""Brace expansion, which bash does before anything else: `a{b,c}` is two words, `{1..3}` three."""

import re
from itertools import chain

from gb300serve.importers.report import Stop
from gb300serve.importers.syntax import Part, Word

MOST = 1000
"""Words that one may become."""
_SEQUENCE = re.compile(r"(?:(-?\d{1,9})\.\.(-?\d{1,9})|([A-Za-z])\.\.([A-Za-z]))(?:\.\.(-?\d{1,9}))?")
_LONGEST_SEQUENCE = 40  # {-999999999..-999999999..-999999999}

_Items = tuple[Part, ...]
"""The parts of a word, every unquoted sign one of its own."""


def braced(word: Word) -> tuple[Word, ...]:
    """The words that bash makes of one, itself where it has no braces to expand. Raises Stop above `MOST` words."""
    bare = "".join(part.text for part in word.parts if _unquoted(part))
    if "{" not in bare or not ("," in bare or ".." in bare):
        return (word,)
    found = _expanded(tuple(chain.from_iterable(map(_signs, word.parts))), word)
    return (word,) if len(found) == 1 else tuple(Word(_joined(items), word.place) for items in found)


def _unquoted(part: Part) -> bool:
    return part.kind == "text" and not part.quoted


def _signs(part: Part) -> list[Part]:
    return [part._replace(text=sign) for sign in part.text] if _unquoted(part) else [part]


def _is(item: Part, sign: str) -> bool:
    return _unquoted(item) and item.text == sign


def _expanded(items: _Items, word: Word, depth: int = 0) -> list[_Items]:
    if depth > MOST // 10:
        raise Stop("braces are nested too deeply", word.place)
    pairs = _pairs(items)
    for start, end in sorted(pairs.items()):
        alternatives = _alternatives(items, start, pairs)
        if alternatives is None:
            continue
        before, behind = items[:start], _expanded(items[end + 1 :], word, depth + 1)
        middles = list(chain.from_iterable(_expanded(each, word, depth + 1) for each in alternatives))
        if len(middles) * len(behind) > MOST:
            raise Stop(f"the braces stand for more than {MOST:,} words", word.place)
        return [(*before, *middle, *rest) for middle in middles for rest in behind]
    return [items]


def _pairs(items: _Items) -> dict[int, int]:
    """Which brace closes which."""
    open_, found = list[int](), dict[int, int]()
    for at, item in enumerate(items):
        if _is(item, "{"):
            open_.append(at)
        elif _is(item, "}") and open_:
            found[open_.pop()] = at
    return found


def _alternatives(items: _Items, start: int, pairs: dict[int, int]) -> list[_Items] | None:
    """What stands between the commas, or what a sequence counts; None where bash leaves the braces as they are."""
    end, found, begin, at = pairs[start], list[_Items](), start + 1, start + 1
    while at < end:
        if at in pairs:
            at = pairs[at]
        elif _is(items[at], ","):
            found.append(items[begin:at])
            begin = at + 1
        at += 1
    if found:
        return [*found, items[begin:end]]
    if end - start > _LONGEST_SEQUENCE:
        return None
    inner = items[start + 1 : end]
    return _counted("".join(item.text for item in inner)) if all(map(_unquoted, inner)) else None


def _counted(text: str) -> list[_Items] | None:
    found = _SEQUENCE.fullmatch(text)
    if found is None:
        return None
    first, last, low, high, step = found.groups()
    begin, end = (int(first), int(last)) if first is not None else (ord(low), ord(high))
    stride = abs(int(step or 1)) or 1
    if abs(end - begin) // stride >= MOST:
        raise Stop(f"the braces stand for more than {MOST:,} words", None)
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
