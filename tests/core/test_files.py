from pathlib import Path

from gb300serve.core.files import expanded


def test_a_home_directory() -> None:
    assert expanded("~/a") == Path.home() / "a"
    assert expanded("/a/~") == Path("/a/~")
    assert expanded("~nobody-of-that-name/a") == Path("~nobody-of-that-name/a")
