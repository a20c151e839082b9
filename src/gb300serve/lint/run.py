"""One verdict over one file: errors of the format, or the findings of every rule."""

from collections.abc import Iterable, Iterator

from gb300serve.core.diagnostics import Diagnostic, diagnostic
from gb300serve.core.rules import Finding, Rule
from gb300serve.lint.rules import FAMILIES
from gb300serve.lint.rules.values import in_text, in_values
from gb300serve.lint.subject import RULES, LintSubject
from gb300serve.plan.secrets import redact_diagnostics, without_secrets
from gb300serve.recipe.load import LoadedRecipe

__all__ = ["FAMILIES", "RULES", "findings", "findings_in_any"]

_NO_REASONS = frozenset(
    {"", "todo", "tbd", "fixme", "ignore", "ignored", "none", "n/a", "x", "xxx", "-", "?", "yes", "true", "ok"}
)


def findings(subject: LintSubject, noticed: Iterable[Diagnostic] = ()) -> tuple[Diagnostic, ...]:
    """What the rules find, in the order of the file; ignored rules say nothing, idle ignores say so.

    `noticed` are the warnings and notes that loading the recipe gave: they can be ignored like any other.
    """
    ignored = subject.recipe.lint.ignore
    ours = (None, subject.recipe.engine.name)
    rules = [rule for rule in RULES if rule.engine in ours]
    found = [place_finding(subject.loaded, rule, finding) for rule in rules for finding in rule.check(subject)]
    found += noticed
    shown = [one for one in found if one.code not in ignored]
    if ignored:
        shown += _idle(subject, ignored.keys() - {one.code for one in found})
        shown += _unreasoned(subject)
    own = subject.loaded.source.name
    return without_secrets(sorted(shown, key=lambda d: (d.file != own, d.file or "", d.line or 0)), subject.literals)


def findings_in_any(loaded: LoadedRecipe) -> Iterator[Diagnostic]:
    """What is found in a file that is not a recipe too: a secret must not wait until its file is valid."""
    for code, found in (("SEC003", in_values(loaded.root)), ("SEC004", in_text(loaded.source.text))):
        yield from redact_diagnostics((place_finding(loaded, RULES[code], finding) for finding in found), loaded.root)


def place_finding(loaded: LoadedRecipe, rule: Rule[LintSubject], finding: Finding) -> Diagnostic:
    """The finding with its place in the file."""
    if finding.line is None:
        place = loaded.place(finding.path, of_key=finding.of_key)
    else:
        place = loaded.place(())._replace(file=loaded.source.name, line=finding.line)
    path = ".".join(map(str, finding.path)) or None
    severity = finding.severity or rule.severity
    return Diagnostic(rule.code, rule.name, severity, finding.message, finding.hint, *place, path)


def _idle(subject: LintSubject, codes: set[str]) -> Iterator[Diagnostic]:
    for code in sorted(codes):
        path = ("lint", "ignore", code)
        place = subject.loaded.place(path, of_key=True)
        known = code in RULES
        message = f"{code} is ignored, and hides nothing" if known else f"there is no rule {code}"
        hint = "remove the line" if known else "`gb300serve rules` lists them"
        yield diagnostic("LNT001", message, hint, place, ".".join(path))


def _unreasoned(subject: LintSubject) -> Iterator[Diagnostic]:
    for code, reason in subject.recipe.lint.ignore.items():
        if reason.strip().lower() in _NO_REASONS:
            path = ("lint", "ignore", code)
            message = f"{code} is ignored without a reason: `{reason}` is none"
            place = subject.loaded.place(path)
            hint = "say why it does not apply here"
            yield diagnostic("LNT002", message, hint, place, ".".join(path))
