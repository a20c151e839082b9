"""Evidence: what a release claims, and what it can show for it."""

import re
from collections.abc import Iterator

from gb300serve.core.rules import Finding
from gb300serve.lint.book import rule
from gb300serve.lint.subject import LintSubject

_EMPTY = re.compile(
    r"(?i)(?:n/?a|none|null|unknown|tbd|todo|x{2,}|\?+|-+|…|\.{2,}|misc|various|any|test|default|"
    r"see (?:above|below|log))?\.?"
)
_FIGURE = re.compile(
    r"\d(?:[\d.,]*\d)?\s*(?:tok(?:ens?)?\s*/\s*s(?:ec)?\b|t/s\b|tokens? (?:a|per) second)", re.IGNORECASE
)


@rule("EVD001", "warning")
def verified_without_evidence(subject: LintSubject) -> Iterator[Finding]:
    """The release is called verified, and shows no figure.

    Why: nobody can tell whether a later boot is as good, or what was verified: evidence is never inherited.
    Fix: add `evidence:` with figure, value, unit, workload and method, or write `status: experimental`.
    """
    if subject.recipe.status == "verified" and not subject.recipe.evidence:
        yield Finding(("status",), "verified, and without evidence", "add `evidence:`, or write experimental")


@rule("EVD002", "warning")
def figure_without_workload(subject: LintSubject) -> Iterator[Finding]:
    """A figure does not say on which load or how it was measured.

    Why: 91 and 231 tokens a second are the same release on two loads; a figure without its load compares with nothing.
    Fix: write what was asked (prompt, length, streams), and how it was counted.
    """
    for index, figure in enumerate(subject.recipe.evidence):
        for key, said in (
            ("workload", figure.workload),
            ("method", figure.method),
            ("figure", figure.figure),
            ("unit", figure.unit),
        ):
            if _EMPTY.fullmatch(said.strip()):
                yield Finding(
                    ("evidence", index, key), f"evidence.{index}.{key} says nothing: `{said}`", f"write the {key}"
                )


@rule("EVD003", "note")
def figure_outside_evidence(subject: LintSubject) -> Iterator[Finding]:
    """A title or a limit tells a speed that no evidence backs.

    Why: figures in prose have neither load nor method, and are copied into children that are slower or faster.
    Fix: move the figure to `evidence:`.
    """
    if subject.recipe.evidence:
        return
    prose = [
        (("title",), subject.recipe.title),
        *((("limits", i), text) for i, text in enumerate(subject.recipe.limits)),
    ]
    for path, text in prose:
        if (match := _FIGURE.search(text)) is not None:
            yield Finding(path, f"`{match[0]}` is a figure without workload or method", "move it to evidence:")


@rule("EVD004", "note")
def verified_without_receipts(subject: LintSubject) -> Iterator[Finding]:
    """The release is called verified, and no line of a good boot is on record.

    Why: an engine takes a setting, echoes it and does nothing: only the lines that it prints when it works tell.
    Fix: add `boot: {receipts: […]}` from the log of the boot that was verified.
    """
    if subject.recipe.status == "verified" and not subject.recipe.boot.receipts:
        yield Finding(("status",), "verified, and without receipts of its boot", "add boot.receipts from its log")


@rule("EVD005", "note")
def figure_without_run(subject: LintSubject) -> Iterator[Finding]:
    """A figure does not say in which run it was measured.

    Why: two runs of one release differ by up to 9 %, for the set of tuned kernels alone: the run names the one.
    Fix: add `run:` (a date, or the name of the run's directory).
    """
    for index, figure in enumerate(subject.recipe.evidence):
        if figure.run is None:
            yield Finding(("evidence", index, "figure"), f"evidence.{index} names no run", "add `run:`")
