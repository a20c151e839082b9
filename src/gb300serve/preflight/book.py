"""Where the checks register: `from gb300serve.preflight.book import check`."""

from gb300serve.core.rules import RuleBook
from gb300serve.preflight.subject import Subject

CHECKS: RuleBook[Subject] = RuleBook()
check = CHECKS.rule
