from gb300serve.importers.report import TextPosition
from gb300serve.importers.shell.words import SourceText


def test_every_character_keeps_its_place() -> None:
    text = SourceText("ab\ncd\ne")
    assert [text.place(at) for at in (0, 1, 3, 4, 6)] == [
        TextPosition(1, 1),
        TextPosition(1, 2),
        TextPosition(2, 1),
        TextPosition(2, 2),
        TextPosition(3, 1),
    ]
    assert text.place(99) == TextPosition(3, 2)
    assert text.part(3, 5).place(1) == TextPosition(2, 2)


def test_a_replacement_keeps_the_position_of_the_match() -> None:
    changed = SourceText("a\r\nb\u2014c d").sub(r"\r\n", lambda _: "\n").sub("\u2014", lambda _: "--")
    assert changed.text == "a\nb--c d"
    assert [changed.place(changed.text.index(sign)) for sign in "bcd"] == [
        TextPosition(2, 1),
        TextPosition(2, 3),
        TextPosition(2, 5),
    ]


def test_nothing_replaced_is_the_same_text() -> None:
    text = SourceText("abc")
    assert text.sub("x", lambda _: "y") is text
    assert text.sub("a", lambda found: found[0]) is text


def test_a_text_of_one_place() -> None:
    assert SourceText("abc", fixed=TextPosition(7, 3)).part(1, 2).place(0) == TextPosition(7, 3)
    assert SourceText("").place(0) == TextPosition(1, 1)
