"""Where the checks register: `from gb300serve.preflight.book import check`."""

from gb300serve.core.rules import RuleBook
from gb300serve.preflight.subject import PreflightSubject

CHECKS: RuleBook[PreflightSubject] = RuleBook()
check = CHECKS.rule
