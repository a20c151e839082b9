from gb300serve.cli.views.table import table, width


def test_columns_are_aligned() -> None:
    rows = [["a", "long text", "x"], ["日本", "é", ""]]
    assert list(table(("ONE", "TWO", "THREE"), rows)) == [
        "ONE   TWO        THREE",
        "a     long text  x",
        "日本  é",
    ]
    assert list(table(("A", "B"), [])) == ["A  B"]


def test_the_width_on_a_terminal() -> None:
    assert [width(text) for text in ("abc", "日本", "e\u0301", "😀", "")] == [3, 4, 1, 2, 0]
