import pytest

from gb300serve.importers.report import Report, TextPosition, UnresolvedError
from gb300serve.importers.shell.lexer import Lexer
from gb300serve.importers.shell.parser import Parser
from gb300serve.importers.shell.words import Node, SourceText


def parsed(text: str) -> list[Node]:
    return list(Parser(Lexer(SourceText(text), Report())).complete_commands())


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a b; c > f && d\n", ["SimpleCommand", "AndOr"]),
        ("a | b\n! c\na &\n", ["Pipeline", "Pipeline", "AndOr"]),
        ("if a; then b; elif c; then d; else e; fi\n", ["IfCommand"]),
        ("for i in a b; do c; done\nfor i; do c; done\nfor ((;;)) do c; done\n", ["ForLoop"] * 2 + ["ArithmeticLoop"]),
        ("while a; do b; done < f\nuntil a\ndo b\ndone\n", ["WhileLoop", "WhileLoop"]),
        ("case $x in\n(a|b) c;;\n*) ;;\nesac\n", ["CaseCommand"]),
        ("(a; b)\n{ a; b; } 2>&1\n", ["Group", "Group"]),
        ("f() { a; }\nfunction g { a; }\nh ()\n(\na\n)\n", ["Function"] * 3),
        ("[[ $a == b* ]]\n[[ a =~ ^(b|c)+$ ]]\n((a < b))\n", ["Condition"] * 3),
        ('A=(a "b c"\n  d) # e\nA+=(f)\n', ["SimpleCommand", "SimpleCommand"]),
        ("a <<X; b\n$(\nX\nc\n", ["SimpleCommand", "SimpleCommand", "SimpleCommand"]),
        ("A=$(cat <<'X'\ndon't :)\nX\n)\nb\n", ["SimpleCommand", "SimpleCommand"]),
        ("A=$(case x in a) b;; esac)\n", ["SimpleCommand"]),
    ],
)
def test_commands(text: str, kinds: list[str]) -> None:
    assert [type(node).__name__ for node in parsed(text)] == kinds


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("a\nb)\n", "bash stops at `)`: it has no place here", 2),
        ('a "b")" \\\n c\n', "bash stops at `)`: it has no place here", 1),
        ("if a; then\nb\n", "`if` on line 1 has no `fi`", 3),
        ("if a; then\nfi\n", "bash stops at `fi`: it has no place here", 2),
        ("for i in a; do b\n", "`for` on line 1 has no `done`", 2),
        ("a\ndone\n", "bash stops at `done`: it has no place here", 2),
        ("{ a\n", "`{` on line 1 has no `}`", 2),
        ("(a\n", "`(` on line 1 has no `)`", 2),
        ("a &&\n", "the text ends in the middle of a command", 2),
        ("[[ a\n", "`[[` on line 1 has no `]]`", 2),
        ("A=(a\n", "the parenthesis that opens here is never closed", 1),
        ("A=(a;b)\n", "`;` has no place in the array that opens on line 1", 1),
        ("( " * 70, "the text is nested too deeply", 1),
    ],
)
def test_where_bash_stops(text: str, reason: str, line: int) -> None:
    with pytest.raises(UnresolvedError) as caught:
        parsed(text)
    assert caught.value.reason.startswith(reason)
    assert caught.value.place is not None
    assert caught.value.place.line == line


def test_a_command_knows_how_it_ends() -> None:
    (node,) = parsed("\n  a b # c\n")
    assert (node.place, node.end, node.comment) == (TextPosition(2, 3), "\n", TextPosition(2, 7))  # type: ignore[union-attr]
