from gb300serve.core.text import GIB, gib, some


def test_sizes() -> None:
    assert [gib(size) for size in (0, 41 * 1024**2, GIB, 256703 * 1024**2)] == [
        "0 MiB",
        "41 MiB",
        "1.0 GiB",
        "250.7 GiB",
    ]


def test_some_names() -> None:
    assert (some(("a",)), some(("a", "b", "c"))) == ("a", "a and 2 more")
