"""Diagnostics for people: place, what is wrong, the line itself underlined, what to do."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.redaction import redact_line
from gb300serve.core.text import printable

# The findings about literal secrets: their lines are not shown again, and neither is any line that looks like one.
_LITERAL = frozenset({"SEC003", "SEC004"})
# A longer line would fill the terminal, and hide the next finding.
_LONGEST = 500


def lines(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    """The lines to print, without colour."""
    texts: dict[str, list[str]] = {}
    given = tuple(diagnostics)
    hidden = {(found.file, found.line) for found in given if found.code in _LITERAL}
    for found in given:
        place = ":".join(str(part) for part in (found.file, found.line, found.column) if part is not None)
        prefix = f"{place}: " if place else ""
        yield printable(f"{prefix}{found.severity} {found.code} {found.name}: {found.message}")
        if (found.file, found.line) not in hidden:
            yield from _shown(found, texts)
        if found.hint:
            yield printable(f"    hint: {found.hint}")


def _shown(found: Diagnostic, texts: dict[str, list[str]]) -> Iterator[str]:
    if found.file is None or found.line is None or found.column is None:
        return
    if found.file not in texts:
        texts[found.file] = _read(found.file)
    if not 0 < found.line <= len(texts[found.file]):
        return
    raw = texts[found.file][found.line - 1]
    line = printable(raw)  # before secrets are looked for: a control character may stand in one
    literal = found.code in _LITERAL or (found.path or "").startswith("container.secrets")
    if literal or len(line) > _LONGEST or redact_line(line) != line:
        return
    yield f"    {line}"
    start = min(len(printable(raw[: found.column - 1])), len(line))
    end = _end_of_word(line, start)
    yield "    " + "".join("\t" if c == "\t" else " " for c in line[:start]) + "^" + "~" * (end - start - 1)


def _read(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return []


def _end_of_word(line: str, start: int) -> int:
    end = start + 1
    while end < len(line) and line[end] not in " ,]}#:":
        end += 1
    return end
