"""Where lint's rules register: `from gb300serve.lint.book import rule`."""

from gb300serve.core.rules import RuleBook
from gb300serve.lint.subject import Subject

RULES: RuleBook[Subject] = RuleBook()
rule = RULES.rule
