import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gb300serve.importers.report import Report, UnresolvedError
from gb300serve.importers.shell.braces import MAX_WORDS, expand_braces
from gb300serve.importers.shell.expand import ShellEnvironment
from gb300serve.importers.shell.lexer import Lexer
from gb300serve.importers.shell.script import read_script
from gb300serve.importers.shell.words import SourceText, Word
from tests.support.shells import Shell


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
