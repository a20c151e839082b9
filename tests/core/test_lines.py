from gb300serve.core.lines import split_lines, split_records


def test_records_end_at_line_feeds_and_at_carriage_returns() -> None:
    text = "one\r\n\rtwo 1%\rtwo 2%\n\nthree"
    assert list(split_records(text)) == ["one", "two 1%", "two 2%", "three"]


def test_lines_come_whole_from_pieces_cut_anywhere() -> None:
    text = "one\ntwo\rstill two\n\nlast"
    for size in range(1, len(text)):
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        assert list(split_lines(pieces)) == ["one", "two\rstill two", "", "last"]
    assert list(split_lines(["a\n"])) == ["a"]
