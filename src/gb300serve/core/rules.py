"""Rules of lint and preflight: functions that are registered by a decorator and documented by their docstring."""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from gb300serve.core.diagnostics import Severity

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a rule. `path` is its address in the subject, `severity` overrides that of the rule.

    `line` (from 1) is the position of a finding without a path, such as a comment.
    """

    path: tuple[str | int, ...]
    message: str
    hint: str | None = None
    of_key: bool = False
    severity: Severity | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Rule(Generic[S]):
    """`summary`, `why` and `fix` come from the function's docstring; `engine` restricts the rule to one engine."""

    code: str
    name: str
    severity: Severity
    summary: str
    why: str
    fix: str
    check: Callable[[S], Iterator[Finding]]
    engine: str | None = None


class RuleBook(Generic[S]):
    """A set of rules, ordered by code."""

    def __init__(self) -> None:
        self._rules: dict[str, Rule[S]] = {}
        self._ordered: tuple[Rule[S], ...] = ()

    def rule(
        self, code: str, severity: Severity, engine: str | None = None
    ) -> Callable[[Callable[[S], Iterator[Finding]]], Callable[[S], Iterator[Finding]]]:
        """Register a rule under the function's name, with dashes. Without `engine` it applies to every engine."""

        def register(check: Callable[[S], Iterator[Finding]]) -> Callable[[S], Iterator[Finding]]:
            name = check.__name__.replace("_", "-")
            if code in self._rules:
                raise ValueError(f"{name}: code {code} is taken")
            sections = _sections(name, inspect.getdoc(check) or "")
            self._rules[code] = Rule(code, name, severity, *sections, check, engine)
            return check

        return register

    def __iter__(self) -> Iterator[Rule[S]]:
        if len(self._ordered) != len(self._rules):
            self._ordered = tuple(self._rules[code] for code in sorted(self._rules))
        return iter(self._ordered)

    def __getitem__(self, code: str) -> Rule[S]:
        return self._rules[code]

    def __contains__(self, code: str) -> bool:
        return code in self._rules


def _sections(name: str, doc: str) -> tuple[str, str, str]:
    match = re.fullmatch(r"(?P<summary>.+?)\n+Why: (?P<why>.+?)\n+Fix: (?P<fix>.+)", doc, re.DOTALL)
    if match is None:
        raise ValueError(f"{name}: the docstring of a rule must be one sentence, `Why:` and `Fix:`")
    summary, why, fix = (" ".join(text.split()) for text in match.groups())
    return summary, why, fix
