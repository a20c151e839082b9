"""Lint one file: errors of the format, or the findings of every rule."""

from collections.abc import Container, Iterable, Iterator, Sequence

from gb300serve.core.diagnostics import CATALOGUE, Diagnostic, diagnostic
from gb300serve.core.rules import Finding, Rule
from gb300serve.lint.rules import FAMILIES
from gb300serve.lint.rules.values import in_text, in_values
from gb300serve.lint.subject import RULES, LintSubject
from gb300serve.plan.check import redact_diagnostics, without_secrets
from gb300serve.recipe.load import LoadedRecipe
from gb300serve.recipe.model import SECRET_RULE, IgnoreSection

__all__ = [
    "FAMILIES",
    "PEDANTIC",
    "RULES",
    "all_findings",
    "findings",
    "findings_in_any",
    "rule_findings",
    "without_ignored",
]

_NO_REASONS = frozenset(
    {"", "todo", "tbd", "fixme", "ignore", "ignored", "none", "n/a", "x", "xxx", "-", "?", "yes", "true", "ok"}
)


PEDANTIC = frozenset(rule.code for rule in RULES if rule.pedantic)


def findings(subject: LintSubject, noticed: Iterable[Diagnostic] = ()) -> tuple[Diagnostic, ...]:
    """The findings without ignored rules, but with ignores that have no effect.

    `noticed`: warnings and notes from loading the recipe, which can be ignored too.
    """
    return without_ignored(subject, all_findings(subject, noticed))


def all_findings(subject: LintSubject, noticed: Iterable[Diagnostic] = ()) -> tuple[Diagnostic, ...]:
    """The findings, also those that the recipe ignores."""
    return without_secrets([*rule_findings(subject), *noticed], subject.literals)


def without_ignored(subject: LintSubject, reported: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The findings in the order of the file, without ignored rules, but with ignores that have no effect."""
    lint = subject.recipe.lint
    shown = [diagnostic for diagnostic in reported if not lint.ignores(diagnostic.code, diagnostic.path)]
    if lint.ignore:
        found = {diagnostic.code for diagnostic in reported if lint.ignores(diagnostic.code, diagnostic.path)}
        shown += _idle(subject, lint.ignore.keys() - found)
        shown += _unreasoned(subject)
    own = subject.loaded.source.name
    return tuple(sorted(shown, key=lambda d: (d.file != own, d.file or "", d.line or 0)))


def rule_findings(subject: LintSubject, codes: Container[str] | None = None) -> list[Diagnostic]:
    """The findings of all rules of the engine, or of those with these codes."""
    engines = (None, subject.recipe.engine.name)
    rules = [rule for rule in RULES if rule.engine in engines and (codes is None or rule.code in codes)]
    return [_place(subject.loaded, rule, finding) for rule in rules for finding in rule.check(subject)]


def findings_in_any(loaded: LoadedRecipe) -> Iterator[Diagnostic]:
    """The secrets in a file that is not a valid recipe."""
    for code, secrets in (("SEC003", in_values(loaded.root)), ("SEC004", in_text(loaded.source.text))):
        yield from redact_diagnostics((_place(loaded, RULES[code], finding) for finding in secrets), loaded.root)


def _place(loaded: LoadedRecipe, rule: Rule[LintSubject], finding: Finding) -> Diagnostic:
    """The finding with its place in the file."""
    if finding.line is None:
        place = loaded.place(finding.path, of_key=finding.of_key)
    else:
        place = loaded.place(())._replace(file=loaded.source.name, line=finding.line)
    path = ".".join(map(str, finding.path)) or None
    severity = finding.severity or rule.severity
    return Diagnostic(rule.code, rule.name, severity, finding.message, finding.hint, *place, path, finding.fix)


def _idle(subject: LintSubject, codes: set[str]) -> Iterator[Diagnostic]:
    for code in sorted(codes):
        path = ("lint", "ignore", code)
        place = subject.loaded.place(path, of_key=True)
        if place.file != subject.loaded.source.name:
            continue  # a parent needs it
        known = code in RULES or code in CATALOGUE
        message = f"{code} is ignored but was not reported" if known else f"rule {code} does not exist"
        hint = "remove the line" if known else "`rules` lists them"
        entry = subject.recipe.lint.ignore[code]
        if isinstance(entry, IgnoreSection):
            message = f"{code} is ignored at {entry.path} but was not reported there"
        elif code == SECRET_RULE:
            message, hint = f"{code} is not ignored everywhere", f"write {{{code}: {{path: …, reason: {entry}}}}}"
        yield diagnostic("LNT001", message, hint, place, ".".join(path))


def _unreasoned(subject: LintSubject) -> Iterator[Diagnostic]:
    for code, entry in subject.recipe.lint.ignore.items():
        reason = entry.reason if isinstance(entry, IgnoreSection) else entry
        if reason.strip().lower() in _NO_REASONS:
            path = ("lint", "ignore", code)
            message = f"{code} is ignored without a reason (`{reason}` does not count as one)"
            place = subject.loaded.place(path)
            hint = "write why it does not apply here"
            yield diagnostic("LNT002", message, hint, place, ".".join(path))
