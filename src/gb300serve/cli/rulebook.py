"""Every code that a diagnostic can carry, explained: the rules of lint and the findings of the format."""

from collections.abc import Iterable
from typing import Any

from gb300serve.core.diagnostics import CATALOGUE, CatalogueEntry
from gb300serve.core.rules import Rule
from gb300serve.lint.run import RULES


def described(rules: Iterable[Rule[Any]] = RULES) -> list[dict[str, Any]]:
    """Every code, rules (lint's, when no others are given) and findings of the format, in the order of the codes."""
    explained = [
        {
            "code": r.code,
            "name": r.name,
            "severity": r.severity,
            "summary": r.summary,
            "why": r.why,
            "fix": r.fix,
            "engine": r.engine,
        }
        for r in rules
    ]
    return sorted([*explained, *map(_plain, CATALOGUE.values())], key=lambda row: str(row["code"]))


def _plain(entry: CatalogueEntry) -> dict[str, Any]:
    return {**entry._asdict(), "why": None, "fix": None, "engine": None}
