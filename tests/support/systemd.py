"""Systemd's side of a unit file, small: lines, words, specifiers and variables, as its manual pages describe them."""

import re
from collections.abc import Iterator, Mapping

_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    '"': '"',
    "'": "'",
    "s": " ",
}


def entries(text: str) -> Iterator[tuple[str, str, str]]:
    """Section, key and value of each line; a `\\` at the end of a line joins it with the next, comments left out."""
    section = ""
    for line in _joined(text):
        if line.startswith("["):
            section = line.strip("[]")
        elif line.strip():
            key, _, value = line.partition("=")
            yield section, key, value.strip()


def _joined(text: str) -> Iterator[str]:
    held = ""
    for line in text.split("\n"):
        if line.startswith(("#", ";")):
            continue  # also between continued lines
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        yield held + line
        held = ""


def split(value: str) -> list[str]:
    """The words of a value: quotes taken off, escapes of C replaced (systemd.syntax(7), "Quoting")."""
    words: list[str] = []
    place = 0
    while place < len(value):
        if value[place].isspace() and value[place] in " \t\n\r":
            place += 1
            continue
        word, place = _word(value, place)
        words.append(word)
    return words


def _word(value: str, place: int) -> tuple[str, int]:
    word, quote = "", ""
    while place < len(value):
        c = value[place]
        if c == "\\":
            replaced, place = _escape(value, place + 1)
            word += replaced
            continue
        place += 1
        if quote:
            quote, word = ("", word) if c == quote else (quote, word + c)
        elif c in "\"'":
            quote = c
        elif c in " \t\n\r":
            break
        else:
            word += c
    assert not quote, f"{value!r} has an open quote"
    return word, place


def _escape(value: str, place: int) -> tuple[str, int]:
    if value[place] == "x":
        return chr(int(value[place + 1 : place + 3], 16)), place + 3
    return _SIMPLE[value[place]], place + 1


def executed(word: str, variables: Mapping[str, str]) -> str:
    """What a word of ExecStart= becomes: `%%` is `%`, `$$` is `$`, `${NAME}` the variable; nothing else is allowed."""

    def replaced(found: re.Match[str]) -> str:
        if found[0] in ("%%", "$$"):
            return found[0][0]
        assert found["name"], f"{word!r} has a bare {found[0]}"
        return variables[found["name"]]

    return re.sub(r"%%|\$\$|\$\{(?P<name>\w+)\}|[%$]", replaced, word)
