"""One verdict over one file: errors of the format, or the findings of every rule."""

from collections.abc import Iterator

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.rules import Finding, Rule
from gb300serve.lint.book import RULES
from gb300serve.lint.rules import FAMILIES
from gb300serve.lint.subject import Subject

__all__ = ["FAMILIES", "findings"]


def findings(subject: Subject) -> tuple[Diagnostic, ...]:
    """What the rules find, in the order of the file; ignored rules say nothing, idle ignores say so."""
    ignored = subject.recipe.lint.ignore
    found: list[Diagnostic] = []
    hidden: set[str] = set()
    for rule in RULES:
        for finding in rule.check(subject):
            if rule.code in ignored:
                hidden.add(rule.code)
            else:
                found.append(_diagnostic(subject, rule, finding))
    found += _idle(subject, ignored.keys() - hidden)
    return tuple(sorted(found, key=lambda d: (d.file != subject.loaded.source.name, d.file or "", d.line or 0)))


def _diagnostic(subject: Subject, rule: Rule[Subject], finding: Finding) -> Diagnostic:
    place = subject.loaded.place(finding.path, of_key=finding.of_key)
    return Diagnostic(
        rule.code,
        rule.name,
        finding.severity or rule.severity,
        finding.message,
        finding.hint,
        *place,
        ".".join(map(str, finding.path)) or None,
    )


def _idle(subject: Subject, codes: set[str]) -> Iterator[Diagnostic]:
    for code in sorted(codes):
        path = ("lint", "ignore", code)
        place = subject.loaded.place(path, of_key=True)
        known = code in RULES
        message = f"{code} is ignored, and hides nothing" if known else f"there is no rule {code}"
        hint = "remove the line" if known else "`gb300serve rules` lists them"
        yield Diagnostic("LNT001", "idle-ignore", "warning", message, hint, *place, ".".join(path))
