"""Brace expansion, the first expansion of bash: `a{b,c}` is two words, `{1..3}` three."""

import re
from itertools import chain

from gb300serve.importers.report import UnresolvedError
from gb300serve.importers.shell.words import Part, Word

MAX_WORDS = 1000
"""The most words that one word may expand to."""
_SEQUENCE = re.compile(r"(?:(-?\d{1,9})\.\.(-?\d{1,9})|([A-Za-z])\.\.([A-Za-z]))(?:\.\.(-?\d{1,9}))?")
_MAX_BRACES = 200
_LONGEST_SEQUENCE = 40  # {-999999999..-999999999..-999999999}

_Items = tuple[Part, ...]
"""The parts of a word; every unquoted character is a part."""


def expand_braces(word: Word) -> tuple[Word, ...]:
    """The words that bash expands a word to. Raises UnresolvedError above MAX_WORDS words."""
    bare = "".join(part.text for part in word.parts if _is_unquoted(part))
    if "{" not in bare or not ("," in bare or ".." in bare):
        return (word,)
    if bare.count("{") > _MAX_BRACES:
        raise UnresolvedError(f"the word has more than {_MAX_BRACES} braces", word.place)
    items = tuple(chain.from_iterable(map(_characters, word.parts)))
    expanded = _expand(items, word)
    return (word,) if expanded == [items] else tuple(Word(_join(items), word.place) for items in expanded)


def _is_unquoted(part: Part) -> bool:
    return part.kind == "text" and not part.quoted


def _characters(part: Part) -> list[Part]:
    return [part._replace(text=character) for character in part.text] if _is_unquoted(part) else [part]


def _is(item: Part, character: str) -> bool:
    return _is_unquoted(item) and item.text == character


def _expand(items: _Items, word: Word, depth: int = 0) -> list[_Items]:
    if depth > MAX_WORDS // 10:
        raise UnresolvedError("braces are nested too deeply", word.place)
    pair = _first_pair(items)
    if pair is None:
        return [items]
    start, end = pair
    alternatives = _alternatives(items[start + 1 : end])
    if alternatives is None and end + 1 == len(items):
        return [items]
    tails = _expand(items[end + 1 :], word, depth + 1)
    if alternatives is None:
        return [(*items[: end + 1], *rest) for rest in tails]
    middles = list(chain.from_iterable(_expand(alternative, word, depth + 1) for alternative in alternatives))
    if len(middles) * len(tails) > MAX_WORDS:
        raise UnresolvedError(f"the braces expand to more than {MAX_WORDS:,} words", word.place)
    return [(*items[:start], *middle, *rest) for middle in middles for rest in tails]


def _first_pair(items: _Items) -> tuple[int, int] | None:
    """The first brace with a closing brace. bash ignores `{}` at the start of a word (as for find)."""
    for start, item in enumerate(items):
        if _is(item, "{") and not (start == 0 and len(items) > 1 and _is(items[1], "}")):
            end = _closing(items, start)
            if end is not None:
                return start, end
    return None


def _closing(items: _Items, start: int) -> int | None:
    """A closing brace counts only after a comma or `..` on its level; otherwise it is literal."""
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
    """The alternatives between commas, or the items of a sequence; None if bash keeps the braces.

    After a comma anywhere, also in inner braces, bash removes the outer braces.
    """
    if not any("," in item.text for item in inner):
        short = len(inner) <= _LONGEST_SEQUENCE and all(map(_is_unquoted, inner))
        return _sequence("".join(item.text for item in inner)) if short else None
    alternatives, begin, level = list[_Items](), 0, 0
    for at, item in enumerate(inner):
        level += _is(item, "{") - (level > 0 and _is(item, "}"))
        if level == 0 and _is(item, ","):
            alternatives.append(inner[begin:at])
            begin = at + 1
    return [*alternatives, inner[begin:]]


def _sequence(text: str) -> list[_Items] | None:
    match = _SEQUENCE.fullmatch(text)
    if match is None:
        return None
    first, last, low, high, step = match.groups()
    begin, end = (int(first), int(last)) if first is not None else (ord(low), ord(high))
    stride = abs(int(step or 1)) or 1
    if abs(end - begin) // stride >= MAX_WORDS:
        raise UnresolvedError(f"the braces expand to more than {MAX_WORDS:,} words", None)
    numbers = range(begin, end + (1 if end >= begin else -1), stride if end >= begin else -stride)
    if first is None:
        return [(Part("text", chr(number), quoted=False),) for number in numbers]
    padded = any(re.match(r"-?0\d", number) for number in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [(Part("text", f"{number:0{width}d}", quoted=False),) for number in numbers]


def _join(items: _Items) -> _Items:
    """Join adjacent characters to one part again."""
    parts: list[Part] = []
    for item in items:
        if parts and _is_unquoted(item) and _is_unquoted(parts[-1]):
            parts[-1] = parts[-1]._replace(text=parts[-1].text + item.text)
        else:
            parts.append(item)
    return tuple(parts)
