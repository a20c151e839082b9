"""Diagnostics as SARIF 2.1.0 (OASIS), for code-scanning services."""

from collections.abc import Iterable
from typing import Any

from gb300serve import __version__
from gb300serve.core.diagnostics import Diagnostic

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def document(diagnostics: Iterable[Diagnostic]) -> dict[str, Any]:
    """One run of one tool."""
    found = tuple(diagnostics)
    rules = {d.code: d.name for d in found}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "gb300serve",
                        "semanticVersion": __version__,
                        "rules": [{"id": code, "name": name} for code, name in sorted(rules.items())],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(d) for d in found],
            }
        ],
    }


def _result(found: Diagnostic) -> dict[str, Any]:
    text = found.message + (f" ({found.hint})" if found.hint else "")
    result: dict[str, Any] = {"ruleId": found.code, "level": found.severity, "message": {"text": text}}
    if found.file is not None:
        region = {"startLine": found.line, "startColumn": found.column or 1} if found.line else None
        physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(found.file)}}
        result["locations"] = [{"physicalLocation": physical | ({"region": region} if region else {})}]
    return result


def _uri(file: str) -> str:
    return "".join(c if c.isalnum() or c in "/._-~" else "".join(f"%{b:02X}" for b in c.encode()) for c in file)
