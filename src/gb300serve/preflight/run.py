"""One verdict over one machine: every check, errors first in importance, in the order of the codes."""

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.errors import MachineError
from gb300serve.preflight.checks import FAMILIES
from gb300serve.preflight.subject import CHECKS, PreflightSubject

__all__ = ["CHECKS", "FAMILIES", "MachineUnfitError", "blocking", "judge"]


class MachineUnfitError(MachineError):
    """Something blocks the launch; the diagnostics say what."""

    def __init__(self, ref: str, doctor: str, found: tuple[Diagnostic, ...]) -> None:
        """`doctor`: the command that shows the whole table."""
        blocks = blocking(found)
        what = "one thing blocks" if len(blocks) == 1 else f"{len(blocks)} things block"
        super().__init__(f"{what} {ref} on this machine", hint=doctor, diagnostics=blocks)


def judge(subject: PreflightSubject) -> tuple[Diagnostic, ...]:
    """What the checks find. `path` begins with the name of the fact that it is about."""
    return tuple(
        Diagnostic(
            rule.code,
            rule.name,
            finding.severity or rule.severity,
            finding.message,
            finding.hint,
            path=".".join(map(str, finding.path)),
        )
        for rule in CHECKS
        for finding in rule.check(subject)
    )


def blocking(found: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """The errors among them: exit 6."""
    return tuple(one for one in found if one.severity == "error")
