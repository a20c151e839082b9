"""Every code that a diagnostic can carry, explained: the rules of lint and the findings of the format."""

from typing import Any

from gb300serve.lint.codes import CODES, Code
from gb300serve.lint.run import RULES


def described() -> list[dict[str, Any]]:
    """Every code, rules of lint and findings of the format, in the order of the codes."""
    rules = [
        {"code": r.code, "name": r.name, "severity": r.severity, "summary": r.summary, "why": r.why, "fix": r.fix}
        for r in RULES
    ]
    return sorted([*rules, *map(_plain, CODES)], key=lambda row: str(row["code"]))


def _plain(code: Code) -> dict[str, Any]:
    return {**code._asdict(), "why": None, "fix": None}
