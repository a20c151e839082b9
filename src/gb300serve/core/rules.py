"""A rule: a function, found by its decorator, that explains itself."""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from gb300serve.core.diagnostics import Severity

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found: `path` leads from the subject's root to the place; `severity` overrides the rule's own.

    `line` (from 1) places what has no path, such as a comment.
    """

    path: tuple[str | int, ...]
    message: str
    hint: str | None = None
    of_key: bool = False
    severity: Severity | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Rule(Generic[S]):
    """`summary`, `why` and `fix` come from the function's docstring; `engine` is the only one that it speaks of."""

    code: str
    name: str
    severity: Severity
    summary: str
    why: str
    fix: str
    check: Callable[[S], Iterator[Finding]]
    engine: str | None = None


class RuleDocumentationError(TypeError):
    """The docstring is not one sentence, `Why:` and `Fix:`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}: the docstring of a rule is one sentence, `Why:` and `Fix:`")


class RuleBook(Generic[S]):
    """The rules of one kind, in the order of their codes."""

    def __init__(self) -> None:
        self._rules: dict[str, Rule[S]] = {}
        self._ordered: tuple[Rule[S], ...] = ()

    def rule(
        self, code: str, severity: Severity, engine: str | None = None
    ) -> Callable[[Callable[[S], Iterator[Finding]]], Callable[[S], Iterator[Finding]]]:
        """Decorates a rule; its name is the function's, with dashes. Without `engine` it speaks of every engine."""

        def register(check: Callable[[S], Iterator[Finding]]) -> Callable[[S], Iterator[Finding]]:
            name = check.__name__.replace("_", "-")
            if code in self._rules:
                raise RuleDocumentationError(f"{name}: code {code} is taken")
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
        raise RuleDocumentationError(name)
    return (_joined(match["summary"]), _joined(match["why"]), _joined(match["fix"]))


def _joined(text: str) -> str:
    return " ".join(text.split())
