"""Diagnostics as SARIF 2.1.0 (OASIS), for code-scanning services."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from gb300serve import __version__
from gb300serve.core.diagnostics import Diagnostic

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


class Help(NamedTuple):
    """What a rule says about itself."""

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


def _rule(code: str, name: str, said: Help | None) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": code, "name": name}
    if said is not None:
        rule["shortDescription"] = {"text": said.summary}
        rule["defaultConfiguration"] = {"level": said.severity}
        parts = [text for text in (said.why and f"Why: {said.why}", said.fix and f"Fix: {said.fix}") if text]
        rule["help"] = {"text": "\n\n".join(parts) or said.summary}
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
        region = {"startLine": found.line, "startColumn": found.column or 1} if found.line else None
        physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(found.file)}}
        result["locations"] = [{"physicalLocation": physical | ({"region": region} if region else {})}]
    return result


def _uri(file: str) -> str:
    return "".join(c if (c.isascii() and c.isalnum()) or c in "/._-~" else _escaped(c) for c in file)


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))
