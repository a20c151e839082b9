from gb300serve.document.nodes import MapNode, Source, document_texts, place_of, spot_at
from gb300serve.document.read import parse


def test_every_entry_knows_its_place() -> None:
    root = parse(Source("f", "a:\n  - b: 1\n  - c\n")).root
    for path, key, value in (
        (("a",), ("f", 1, 1), ("f", 2, 3)),
        (("a", 0), ("f", 2, 5), ("f", 2, 5)),
        (("a", 0, "b"), ("f", 2, 5), ("f", 2, 8)),
        (("a", 1), ("f", 3, 5), ("f", 3, 5)),
    ):
        spot, exact = spot_at(root, path)
        assert spot is not None
        assert (exact, place_of(spot, of_key=True), place_of(spot)) == (True, key, value)


def test_what_is_not_there_has_its_ancestors_place() -> None:
    root = parse(Source("f", "a: {b: 1}\n")).root
    spot, exact = spot_at(root, ("a", "x", "y"))
    assert spot is not None
    assert (exact, place_of(spot)) == (False, ("f", 1, 4))
    assert spot_at(root, ("x",)) == (None, False)
    assert spot_at(root, ()) == (None, True)
    assert spot_at(root, ("a", "b", 0)) == (root["a"].spots["b"], False)


def test_a_dropped_key_leaves_no_place() -> None:
    root = parse(Source("f", "a: 1\nb: 2\n")).root
    assert isinstance(root, MapNode)
    root.drop("a")
    root.drop("absent")
    assert (dict(root), list(root.spots)) == ({"b": 2}, ["b"])


def test_texts_and_keys_in_the_order_of_the_file() -> None:
    found = document_texts({"a": "x", "b": [1, "y", {"c": "z"}], "d": {"e": None, "f": {}}})
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
    assert document_texts("x").texts == [((), "", "x")]
    assert document_texts(None) == ([], [])
