"""What doctor shows: a row a fact with its verdict, below it what was found and what to do; and the same as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from gb300serve.cli.doctor_words import host_rows, release_rows
from gb300serve.cli.table import table
from gb300serve.core.diagnostics import RANK, Diagnostic
from gb300serve.core.text import printable
from gb300serve.host.missing import Missing
from gb300serve.preflight.subject import PreflightSubject

SCHEMA = "gb300serve.doctor/1"
_WORDS = {"error": "blocks", "warning": "warning", "note": "note"}


def document(subject: PreflightSubject, found: Sequence[Diagnostic], on: str) -> dict[str, Any]:
    """`gb300serve.doctor/1`. `facts` by name: value (bytes, watts), verdict, why it is missing."""
    facts = {name: _fact(name, value, found) for name, value, _ in _facts(subject)}
    release = subject.release
    return {
        "schema": SCHEMA,
        "recipe": release.plan.recipe if release else None,
        "on": on,
        "simulated": on == "sim",
        "facts": facts,
        "diagnostics": [one.as_json() for one in found],
    }


def lines(subject: PreflightSubject, found: Sequence[Diagnostic]) -> Iterator[str]:
    """The table: fact, verdict, value; indented below a fact its findings, each with what to do."""
    rows: list[tuple[str, str, str]] = []
    for name, value, shown in _facts(subject):
        first, *more = shown or ("none",)
        rows.append((name, verdict(name, value, found), printable(first)))
        rows += [("", "", printable(line)) for line in more]
        for one in _about(name, found):
            rows.append(("", "", f"  {one.code} {_WORDS[one.severity]}: {printable(one.message)}"))
            rows += [("", "", f"    to do: {printable(one.hint)}")] if one.hint else []
    yield from table(("FACT", "VERDICT", "VALUE"), rows)


def verdict(name: str, value: object, found: Sequence[Diagnostic]) -> str:
    """The worst that was found about a fact; `unknown` and `not asked` where it is missing."""
    worst = max(_about(name, found), key=lambda one: RANK[one.severity], default=None)
    if isinstance(value, Missing) and (worst is None or worst.severity == "note"):
        return "unknown" if value.asked else "not asked"
    return _WORDS[worst.severity] if worst else "ok"


def _facts(subject: PreflightSubject) -> Iterator[tuple[str, object, Sequence[str]]]:
    yield from host_rows(subject)
    if subject.release is not None:
        yield from release_rows(subject, subject.release)


def _about(name: str, found: Sequence[Diagnostic]) -> list[Diagnostic]:
    return [one for one in found if (one.path or "").partition(".")[0] == name]


def _fact(name: str, value: object, found: Sequence[Diagnostic]) -> dict[str, Any]:
    missing = isinstance(value, Missing)
    return {
        "verdict": verdict(name, value, found),
        "value": None if missing else _plain(value),
        "missing": value.why if isinstance(value, Missing) else None,
    }


def _plain(value: object) -> Any:
    """Dataclasses as objects, tuples as lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else value
