import pytest

from gb300serve.cli.views.fit import WIDTH, bar


@pytest.mark.parametrize(
    ("parts", "total", "expected"),
    [
        ((("#", 32.0), ("=", 16.0)), 64.0, "#" * 32 + "=" * 16 + "." * 16),
        ((("#", 64.0),), 64.0, "#" * 64),
        ((("#", 0.0), ("~", 0.01)), 64.0, "~" + "." * 63),
        ((("#", 60.0), ("~", -3.0)), 64.0, "#" * 60 + "." * 4),
        ((("#", 64.0), ("~", 0.01)), 64.0, "#" * 64),
        ((("#", 10.0), ("=", 0.01), ("~", 0.01)), 64.0, "#" * 10 + "=~" + "." * 52),
    ],
)
def test_a_bar_to_scale(parts: tuple[tuple[str, float], ...], total: float, expected: str) -> None:
    assert bar(parts, total) == expected
    assert len(expected) == WIDTH
