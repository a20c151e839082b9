"""Where lint's rules register: `rule` for any engine, `vllm_rule` and `sglang_rule` for what only one of them does."""

from functools import partial

from gb300serve.core.rules import RuleBook
from gb300serve.lint.subject import LintSubject

RULES: RuleBook[LintSubject] = RuleBook()
rule = RULES.rule
vllm_rule = partial(RULES.rule, engine="vllm")
sglang_rule = partial(RULES.rule, engine="sglang")
