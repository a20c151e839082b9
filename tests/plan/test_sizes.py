import pytest

from gb300serve.plan.model import Size, read_size


@pytest.mark.parametrize(
    ("text", "size", "count"),
    [
        ("0", Size("0", ""), 0),
        ("512b", Size("512", ""), 512),
        ("16G", Size("16", "g"), 16 << 30),
        ("1.5 GiB", Size("1.5", "g"), 3 << 29),
        ("2pb", Size("2", "p"), 2 << 50),
    ],
)
def test_sizes(text: str, size: Size, count: int) -> None:
    assert read_size(text) == size
    assert size.bytes == count


@pytest.mark.parametrize("text", ["", "g", "-4g", "huge", "1.2.3g", "1x", "1e9", "٣"])
def test_what_docker_refuses(text: str) -> None:
    assert read_size(text) is None
