import pytest

from gb300serve.importers.report import Report, TextPosition, UnresolvedError
from gb300serve.importers.shell.lexer import Lexer
from gb300serve.importers.shell.words import Operator, Part, SourceText, Word


def tokens(text: str, report: Report | None = None) -> list[Word | Operator]:
    return list(Lexer(SourceText(text), report or Report()).tokens())


def shown(text: str) -> list[str]:
    return [token.text if isinstance(token, Operator) else f"<{token.plain}>" for token in tokens(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a 'b c' d\n", ["<a>", "<b c>", "<d>", "\n"]),
        ("a;b&&c|d", ["<a>", ";", "<b>", "&&", "<c>", "|", "<d>"]),
        ("a > f 2>&1 <<<x b", ["<a>", ">", ">", "<", "<b>"]),
        ("a # no\nb", ["<a>", "\n", "<b>"]),
        ("cat <<E\nx y\nE\nb", ["<cat>", "<", "\n", "<b>"]),
        ("a \\\n b", ["<a>", "<b>"]),
        ("(a)", ["(", "<a>", ")"]),
        ("a <b> c=<d e>:/f <g\n", ["<a>", "<<b>>", "<c=<d e>:/f>", "<", "\n"]),
        ("a <b >c <<E>d\nE\n", ["<a>", "<", ">", "<", ">", "\n"]),
    ],
)
def test_words_and_operators(text: str, expected: list[str]) -> None:
    assert shown(text) == expected


def test_the_parts_of_a_word() -> None:
    (word,) = tokens("a'b'\"$C\"${D:-e}$(f)`g`$((1))")
    assert isinstance(word, Word)
    assert [part[:3] for part in word.parts] == [
        ("text", "a", False), ("text", "b", True), ("text", "", True), ("variable", "C", True),
        ("variable", "D:-e", False), ("command", "f", False), ("command", "g", False), ("arithmetic", "1", False),
    ]  # fmt: skip
    assert (word.place, word.bare, word.plain) == (TextPosition(1, 1), True, "ab\0\0\0\0\0")


def test_a_substitution_knows_its_place() -> None:
    (word,) = (token for token in tokens("\n\n  ${X}") if isinstance(token, Word))
    (part,) = word.parts
    assert part.source is not None
    assert part.source.place(0) == TextPosition(3, 5)


@pytest.mark.parametrize(
    ("text", "reason", "place"),
    [
        ("a 'b", "the single quote that opens here is never closed", TextPosition(1, 3)),
        ('a\n "b', "the double quote that opens here is never closed", TextPosition(2, 2)),
        ("a `b", "the backtick that opens here is never closed", TextPosition(1, 3)),
        ("a ${b", "the ${ that opens here is never closed", TextPosition(1, 3)),
        ("a $(b", "the $( that opens here is never closed", TextPosition(1, 3)),
        ("a $'b", "the single quote that opens here is never closed", TextPosition(1, 4)),
    ],
)
def test_what_is_never_closed(text: str, reason: str, place: TextPosition) -> None:
    with pytest.raises(UnresolvedError) as caught:
        tokens(text)
    assert (caught.value.reason, caught.value.place) == (reason, place)


def test_two_lines_that_bash_would_join_are_two_words() -> None:
    report = Report()
    assert [token.plain for token in tokens("--port 3\\\n--rm", report) if isinstance(token, Word)] == [
        "--port", "3", "--rm",
    ]  # fmt: skip
    assert [(found.code, found.line, found.column) for found in report.diagnostics] == [("IMP001", 1, 9)]


def test_json_without_its_quotes_is_one_word() -> None:
    report = Report()
    words = [token for token in tokens('--c {"a": 1, "b": [2]} d', report) if isinstance(token, Word)]
    assert [word.parts for word in words][1] == (Part("text", '{"a": 1, "b": [2]}', quoted=True),)
    assert [found.code for found in report.diagnostics] == ["IMP007"]


def test_a_text_that_is_nested_too_deeply() -> None:
    with pytest.raises(UnresolvedError):
        Lexer(SourceText("a"), Report(), 41)


def test_a_placeholder_that_bash_would_take_for_redirections() -> None:
    report = Report()
    assert [token.plain for token in tokens("a '<b>' --key=<c d>", report) if isinstance(token, Word)] == [
        "a",
        "<b>",
        "--key=<c d>",
    ]
    (found,) = report.diagnostics
    assert (found.code, found.line, found.column) == ("IMP001", 1, 15)
    assert found.message == "<c d> is an unquoted placeholder: bash reads `<` and `>` as redirections"
