"""Files that the text writes itself before it names them: `cat > .env <<EOF`."""

import re

_TARGET = r"(?P<add>>?)>[ \t]*(?P<path{0}>['\"]?[^\s<>;&|$`'\"]+['\"]?)"
_WORD = r"<<(?P<tabs{0}>-?)[ \t]*(?P<quote{0}>['\"\\]?)(?P<end{0}>\w+)['\"]?"
_CAT = re.compile(
    r"^[ \t]*cat[ \t]+(?:"
    + _TARGET.format(1)
    + r"[ \t]*"
    + _WORD.format(1)
    + "|"
    + _WORD.format(2)
    + r"[ \t]*"
    + _TARGET.format(2).replace("add", "more")
    + r")[ \t]*\n",
    re.MULTILINE,
)
# What bash would replace in a here-document whose word is not quoted.
_EXPANDED = re.compile(r"[$`\\]")


def written_files(text: str) -> dict[str, str | None]:
    """What each path holds once the text has run, as the text names it; None where bash would have to compute it."""
    found: dict[str, str | None] = {}
    at = 0
    while (said := _CAT.search(text, at)) is not None:
        form = "1" if said["path1"] else "2"
        body, at = _body(text, said.end(), said[f"end{form}"], tabs=bool(said[f"tabs{form}"]))
        path = said[f"path{form}"].strip("'\"")
        computed = not said[f"quote{form}"] and _EXPANDED.search(body) is not None
        before = found.get(path) if said["add"] or said["more"] else ""
        found[path] = None if computed or before is None else before + body
    return found


def _body(text: str, start: int, end: str, *, tabs: bool) -> tuple[str, int]:
    """The lines up to the one that ends them, and where the text goes on behind it."""
    lines: list[str] = []
    while start < len(text):
        stop = text.find("\n", start) + 1 or len(text)
        line, start = text[start:stop], stop
        plain = line.lstrip("\t") if tabs else line
        if plain.rstrip("\n") == end:
            break
        lines.append(plain)
    return "".join(lines), start
