"""One module a family, one function a rule. A new family is imported here, and nowhere else."""

from gb300serve.lint.rules import pinned

FAMILIES = (pinned,)
