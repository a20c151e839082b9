"""Fixtures for every test."""

from collections import Counter

import pytest

pytest.register_assert_rewrite("tests.support")

pytest_plugins = [
    "tests.support.golden",
    "tests.support.program",
    "tests.support.station",
    "tests.support.real_engine",
    "tests.support.recipe_fixture",
    "tests.support.switched",
]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what was left out, each reason once."""
    reasons = Counter(
        str(report.longrepr[2]).removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple)
    )
    for reason, count in reasons.most_common():
        terminalreporter.write_line(
            f"{count} tests {reason if reason.startswith('left out') else f'left out: {reason}'}"
        )
