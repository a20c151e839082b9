"""Diagnostics as text, as GitHub workflow commands and as SARIF 2.1.0 (OASIS)."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gb300serve import __version__
from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.files import is_file
from gb300serve.core.redaction import redact_line
from gb300serve.core.text import printable

# The findings about literal secrets: lines with secrets are never shown.
_LITERAL = frozenset({"SEC003", "SEC004"})
# More errors of one file usually have one cause.
MOST_ERRORS = 50
# A longer line would fill the terminal, and hide the next finding.
_LONGEST = 500
# A file that was larger was not read.
_LARGEST = 4 << 20
_WORD = re.compile(r"[^ ,\]}#:]*")


def text_lines(
    diagnostics: Iterable[Diagnostic], most_errors: int = MOST_ERRORS, *, quote: bool = True
) -> Iterator[str]:
    """The lines to print, without colour: at most so many errors of each file, then the number of the others.

    Not `quote`: no source lines, as a pasted command may contain a secret.
    """
    texts: dict[str, list[str]] = {}
    given = tuple(diagnostics)
    hidden = {(found.file, found.line) for found in given if found.code in _LITERAL}
    errors: Counter[str | None] = Counter()
    for found in given:
        errors[found.file] += found.severity == "error"
        if found.severity == "error" and errors[found.file] > most_errors:
            continue
        place = ":".join(str(part) for part in (found.file, found.line, found.column) if part is not None)
        prefix = f"{place}: " if place else ""
        yield printable(f"{prefix}{found.severity} {found.code} {found.name}: {found.message}")
        if quote and (found.file, found.line) not in hidden:
            yield from _shown(found, texts)
        if found.hint:
            yield printable(f"    hint: {found.hint}")
        for related in found.related:
            yield printable(f"    {related.file}:{related.line}:{related.column}: {related.message}")
    for file, count in errors.items():
        if count > most_errors:
            yield printable(f"{file}: {count - most_errors} more errors; `lint --all-errors` prints them")


def _shown(found: Diagnostic, texts: dict[str, list[str]]) -> Iterator[str]:
    if found.file is None or found.line is None or found.column is None:
        return
    if found.file not in texts:
        texts[found.file] = _read(found.file)
    if not 0 < found.line <= len(texts[found.file]):
        return
    raw = texts[found.file][found.line - 1]
    line = printable(raw)  # before the search for secrets: one may contain a control character
    literal = found.code in _LITERAL or (found.path or "").startswith("container.secrets")
    if literal or len(line) > _LONGEST or redact_line(line) != line:
        return
    yield f"    {line}"
    start = min(len(printable(raw[: found.column - 1])), len(line))
    word = _WORD.match(line, start + 1)
    yield "    " + "".join("\t" if c == "\t" else " " for c in line[:start]) + "^" + "~" * len(word[0] if word else "")


def _read(file: str) -> list[str]:
    if not is_file(Path(file)):  # opening a pipe waits for its writer, a device may never end
        return []
    try:
        with Path(file).open(encoding="utf-8", errors="replace") as text:
            return text.read(_LARGEST).split("\n")
    except OSError:
        return []


_LEVEL = {"error": "error", "warning": "warning", "note": "notice"}


def github_lines(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    """One command a diagnostic; source: GitHub's documentation of workflow commands."""
    for found in diagnostics:
        places = (("file", found.file), ("line", found.line), ("col", found.column))
        properties = [f"{key}={_property(str(value))}" for key, value in places if value is not None]
        properties.append(f"title={_property(f'{found.code} {found.name}')}")
        text = found.message + (f"\n{found.hint}" if found.hint else "")
        yield f"::{_LEVEL[found.severity]} {','.join(properties)}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


class Help(NamedTuple):
    """The documentation of a rule."""

    summary: str
    severity: str
    why: str | None = None
    fix: str | None = None


def document(diagnostics: Iterable[Diagnostic], rules: Mapping[str, Help]) -> dict[str, Any]:
    """One run of one tool; `rules` explains codes. Rules that found nothing are left out."""
    found = tuple(diagnostics)
    names = dict(sorted({d.code: d.name for d in found}.items()))
    index = {code: place for place, code in enumerate(names)}
    driver = {
        "name": "gb300serve",
        "semanticVersion": __version__,
        "rules": [_rule(code, name, rules.get(code)) for code, name in names.items()],
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": [_result(d, index) for d in found]}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str, name: str, explained: Help | None) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": code, "name": name}
    if explained is not None:
        rule["shortDescription"] = {"text": explained.summary}
        rule["defaultConfiguration"] = {"level": explained.severity}
        parts = [f"{title}: {text}" for title, text in (("Why", explained.why), ("Fix", explained.fix)) if text]
        rule["help"] = {"text": "\n\n".join(parts) or explained.summary}
    return rule


def _result(found: Diagnostic, index: Mapping[str, int]) -> dict[str, Any]:
    text = found.message + (f" ({found.hint})" if found.hint else "")
    result: dict[str, Any] = {
        "ruleId": found.code,
        "ruleIndex": index[found.code],
        "level": found.severity,
        "message": {"text": text},
    }
    if found.file is not None:
        result["locations"] = [_location(found.file, found.line, found.column)]
    if found.related:
        result["relatedLocations"] = [
            _location(place.file, place.line, place.column) | {"message": {"text": place.message}}
            for place in found.related
        ]
    return result


def _location(file: str, line: int | None, column: int | None) -> dict[str, Any]:
    region = {"region": {"startLine": line, "startColumn": column or 1}} if line else {}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(file)}} | region}


def _uri(file: str) -> str:
    return "".join(c if (c.isascii() and c.isalnum()) or c in "/._-~" else _escaped(c) for c in file)


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The header and the rows, with two spaces between columns."""
    widths = [max(width(row[column]) for row in (header, *rows)) for column in range(len(header))]
    for row in (header, *rows):
        yield "  ".join(text + " " * (size - width(text)) for text, size in zip(row, widths, strict=True)).rstrip()


def width(text: str) -> int:
    """Columns on a terminal: East Asian wide characters take two, combining ones none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
