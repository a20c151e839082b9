"""Run every check against one machine, in the order of the codes."""

from gb300serve.core.diagnostics import Diagnostic, dotted_path
from gb300serve.core.errors import MachineError
from gb300serve.preflight.checks import FAMILIES
from gb300serve.preflight.subject import CHECKS, PreflightSubject

__all__ = ["CHECKS", "FAMILIES", "MachineUnfitError", "blocking", "judge"]


class MachineUnfitError(MachineError):
    """The machine cannot run the release; the diagnostics contain the reasons."""

    def __init__(self, ref: str, doctor: str, found: tuple[Diagnostic, ...]) -> None:
        """`doctor`: the command that shows the whole table."""
        blocks = blocking(found)
        what = "one check blocks" if len(blocks) == 1 else f"{len(blocks)} checks block"
        super().__init__(f"{what} {ref} on this machine", hint=doctor, diagnostics=blocks)


def judge(subject: PreflightSubject) -> tuple[Diagnostic, ...]:
    """The findings of the checks; `path` starts with the name of the fact."""
    return tuple(
        Diagnostic(
            rule.code,
            rule.name,
            finding.severity or rule.severity,
            finding.message,
            finding.hint,
            path=dotted_path(finding.path),
        )
        for rule in CHECKS
        for finding in rule.check(subject)
    )


def blocking(found: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """The errors among them: exit 6."""
    return tuple(finding for finding in found if finding.severity == "error")
