import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gb300serve.importers.launches import read_script
from gb300serve.importers.report import Report, TextPosition, UnresolvedError
from gb300serve.importers.shell.lexer import Lexer
from gb300serve.importers.shell.words import MAX_WORDS, ShellEnvironment, SourceText, Word, expand_braces
from tests.support.shells import Shell


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


def words(text: str) -> list[str]:
    (word,) = Lexer(SourceText(text), Report()).tokens()
    assert isinstance(word, Word)
    return [each.plain for each in expand_braces(word)]


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell("bash", tmp_path_factory.mktemp("bash"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a{b,c}d", ["abd", "acd"]),
        ("{1..3}", ["1", "2", "3"]),
        ("{3..1..2}", ["3", "1"]),
        ("{08..10}", ["08", "09", "10"]),
        ("{-01..1}", ["-01", "000", "001"]),
        ("{a..e..2}", ["a", "c", "e"]),
        ("{a,b}{c,d}", ["ac", "ad", "bc", "bd"]),
        ("{a,{b,c}d}", ["a", "bd", "cd"]),
        ("{a{b,c}}", ["{ab}", "{ac}"]),
        ("a{,b}", ["a", "ab"]),
        ("{a}", ["{a}"]),
        ("{a,b", ["{a,b"]),
        ("'{a,b}'", ["{a,b}"]),
        ("{'a,b',c}", ["a,b", "c"]),
        ("${X}{a,b}", ["\0a", "\0b"]),
        ("{{x}}", ["{{x}}"]),
        ("{1..a}", ["{1..a}"]),
    ],
)
def test_the_words_of_a_word(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(signs=st.lists(st.sampled_from(["{", "}", ",", "..", "a", "b", "1", "3", "'x,y'", '"{"']), max_size=14))
def test_any_braces_are_those_of_bash(bash: Shell, signs: list[str]) -> None:
    text = f"docker run i:{''.join(signs)}\n"
    report = Report()
    found = tuple(word.text for word in read_script(SourceText(text), ShellEnvironment("/h", "/"), report).words)
    assert found == bash.words(text)[2:]


@pytest.mark.parametrize("text", ["{1..9999}", "{0..9}{0..9}{0..9}{0..9}", "{a,b}" * 40, "{1..1}" * 200])
def test_too_many_words_are_rejected(text: str) -> None:
    with pytest.raises(UnresolvedError):
        words(text)


def test_the_largest_expansion() -> None:
    assert len(words(f"{{1..{MAX_WORDS}}}")) == MAX_WORDS


def test_too_many_braces_are_rejected() -> None:
    with pytest.raises(UnresolvedError):
        words("{" * 50_000 + "a,b" + "}" * 50_000)


def test_a_long_word_costs_no_time() -> None:
    assert words("{" * 150 + "a" * 20_000 + ",") == ["{" * 150 + "a" * 20_000 + ","]
