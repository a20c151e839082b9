from gb300serve.document.nodes import words


def test_texts_and_keys_in_the_order_of_the_file() -> None:
    found = words({"a": "x", "b": [1, "y", {"c": "z"}], "d": {"e": None, "f": {}}})
    assert found.texts == [(("a",), "a", "x"), (("b", 1), "b", "y"), (("b", 2, "c"), "c", "z")]
    assert [(path, key) for path, key, _ in found.keys] == [
        (("a",), "a"),
        (("b",), "b"),
        (("b", 2, "c"), "c"),
        (("d",), "d"),
        (("d", "e"), "e"),
        (("d", "f"), "f"),
    ]


def test_a_single_text() -> None:
    assert words("x").texts == [((), "", "x")]
    assert words(None) == ([], [])
