"""Unit tests mirror the source; end-to-end tests stand apart."""

from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "gb300serve"
# Folders that mirror no package of the source.
APART = {"e2e", "station", "support"}


def unit_tests() -> list[Path]:
    """Test files in folders that mirror the source, relative to the tests."""
    found = (path.relative_to(TESTS) for path in TESTS.rglob("test_*.py"))
    return sorted(path for path in found if len(path.parts) > 1 and path.parts[0] not in APART)


def has_module(test: Path) -> bool:
    """Is it named after a module or a package: `test_<module>.py` or `test_<module>_<topic>.py`?"""
    words = test.stem.split("_")[1:]
    names = ("_".join(words[:count]) for count in range(1, len(words) + 1))
    places = [SOURCE / test.parent / name for name in names]
    return any(place.with_suffix(".py").is_file() or (place / "__init__.py").is_file() for place in places)


def test_the_rule_tells_names_apart() -> None:
    assert has_module(Path("core/test_redaction.py"))
    assert has_module(Path("core/test_redaction_of_lines.py"))
    assert not has_module(Path("core/test_redactions.py"))
    assert not has_module(Path("nowhere/test_redaction.py"))


def test_every_unit_test_file_is_named_after_a_module() -> None:
    assert [str(path) for path in unit_tests() if not has_module(path)] == []


def test_unit_tests_need_no_docker_and_no_real_engine() -> None:
    marks = ("mark.docker", "mark.engine")
    found = [path for path in unit_tests() if any(mark in (TESTS / path).read_text() for mark in marks)]
    assert found == []
