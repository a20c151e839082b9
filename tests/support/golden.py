"""Whole outputs compared with files. `--update-golden` writes them anew, to be reviewed as a diff."""

from collections.abc import Callable
from pathlib import Path

import pytest

Golden = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files instead of comparing them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """`golden("name.txt", text)` compares with golden/name.txt beside the test module."""
    directory = Path(request.path).parent / "golden"

    def compare(name: str, text: str) -> None:
        path = directory / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        assert text == path.read_bytes().decode(), f"golden/{name} differs; --update-golden writes it anew"

    return compare
