"""Fixtures for every test."""

from collections import Counter
from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("tests.support")

pytest_plugins = [
    "tests.support.distribution",
    "tests.support.golden",
    "tests.support.program",
    "tests.support.station",
    "tests.support.real_engine",
    "tests.support.recipe_fixture",
    "tests.support.switched",
]


@pytest.fixture(scope="session", autouse=True)
def terminal() -> Iterator[None]:
    """The same terminal for every test, whatever the one is that the tests are run from."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
            patch.delenv(name, raising=False)
        for name, value in (("TERM", "xterm-256color"), ("COLUMNS", "80"), ("LINES", "25")):
            patch.setenv(name, value)
        yield


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
