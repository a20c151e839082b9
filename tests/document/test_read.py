from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gb300serve.core.values import WrittenFloat
from gb300serve.document.nodes import Source
from gb300serve.document.read import MAX_DEPTH, Document, explain_syntax_error, parse, parse_foreign, replace_scalar


def read(text: str) -> Document:
    return parse(Source("f.yaml", text))


def places(text: str) -> list[tuple[str, str, int | None, int | None]]:
    return [(d.code, d.name, d.line, d.column) for d in read(text).problems]


def test_values() -> None:
    document = read("a: text\nb: [1, -2, 0.90, true, false, null]\nc: {d: \"5\", e: ''}\nf: |\n  two\n  lines\n")
    assert document.problems == []
    assert document.root == {
        "a": "text",
        "b": [1, -2, 0.9, True, False, None],
        "c": {"d": "5", "e": ""},
        "f": "two\nlines\n",
    }
    assert str(document.root["b"][2]) == "0.90"


@pytest.mark.parametrize("text", ["60", "0", "-1", "1048576", "0.97", "0.90", "-0.5", "100.000"])
def test_a_number_keeps_its_spelling(text: str) -> None:
    document = read(f"a: {text}")
    assert document.problems == []
    assert isinstance(document.root["a"], (int, WrittenFloat))
    assert str(document.root["a"]) == text


AMBIGUOUS = {
    "null": ["~", "Null", "NULL"],
    "a boolean": [
        "True", "TRUE", "y", "Y", "yes", "Yes", "YES", "on", "On", "ON",
        "False", "FALSE", "n", "N", "no", "No", "NO", "off", "Off", "OFF",
    ],
    "a date": ["2026-09-15", "2026-9-5", "2026-09-15T10:00:00Z", "2026-09-15 10:00:00"],
    "a hexadecimal number": ["0x1F", "-0xff", "0xdead_beef"],
    "a binary number": ["0b101"],
    "an octal number": ["017", "0o17", "00", "-017", "0_7"],
    "a base-60 number": ["190:20:30", "1:30", "22:22", "1:30.5"],
    "a number that JSON cannot express": [".inf", "-.inf", ".Inf", ".nan", ".NaN"],
    "a number with an exponent": ["1e3", "1.5e+3", "12e03", "723066e11", "-2E-5", ".5e1"],
    "a number not written as in JSON": ["1_000", "+5", "5.", ".5", "08", "-0", "1_0.5", "09.5"],
    "a special YAML key": ["=", "<<"],
}  # fmt: skip


@pytest.mark.parametrize(("what", "text"), [(what, text) for what, texts in AMBIGUOUS.items() for text in texts])
def test_a_scalar_that_readers_take_differently(what: str, text: str) -> None:
    (problem,) = read(f"a:\n  - x\n  - {text}\n").problems
    assert (problem.code, problem.name, problem.line, problem.column) == ("YAML005", "ambiguous-value", 3, 5)
    assert problem.message == f"`{text}` is read as {what} by some YAML readers and as text by others"
    assert problem.hint is not None
    assert problem.hint.startswith(f'write "{text}" (quoted) if text is meant')
    assert read(f'a: "{text}"').problems == []
    assert read(f"a: '{text}'").root == {"a": text}


@pytest.mark.parametrize(
    "text", ["1", "0.5", "true", "null", *(text for texts in AMBIGUOUS.values() for text in texts)]
)
def test_a_key_that_is_not_text(text: str) -> None:
    codes = [d.code for d in read(f"a:\n  {text}: x\n").problems]
    assert codes in (["YAML007"], ["YAML003"])  # `<<` is a merge key
    assert read(f'a:\n  "{text}": x\n').problems == []


@pytest.mark.parametrize(
    "text",
    ["v14", "0.1.dev20904+g179dd0fa9", "8021:8000", "a060", "1.2.3", "10GB", "-", "--flag", "nope", "truey", "1e", "e5",
     "0.33.0", "0xg", "=a", "<<a", "in", "2026-09", "1 2"],
)  # fmt: skip
def test_plain_text(text: str) -> None:
    document = read(f"a: [x, {text}]" if text != "-" else "a: [x, '-']")
    assert document.problems == []
    assert document.root == {"a": ["x", text]}


def test_duplicate_keys_at_any_depth() -> None:
    text = "a: {b: [{c: 1, c: 2}]}\nd: 1\na: 2\n"
    assert places(text) == [("YAML002", "duplicate-key", 1, 16), ("YAML002", "duplicate-key", 3, 1)]
    assert "already on line 1" in read(text).problems[1].message
    assert read(text).root == {"a": {"b": [{"c": 1}]}, "d": 1}


def test_what_only_some_readers_have() -> None:
    text = "a: &x 1\nb: *x\nc: !!str 5\nd: !own {e: 1}\n<<: {f: 1}\n? [g]\n: 1\nh:\n? i\n"
    assert places(text) == [
        ("YAML003", "not-plain-yaml", 1, 4),
        ("YAML003", "not-plain-yaml", 2, 4),
        ("YAML003", "not-plain-yaml", 3, 4),
        ("YAML003", "not-plain-yaml", 4, 4),
        ("YAML003", "not-plain-yaml", 5, 1),
        ("YAML007", "key-not-text", 6, 3),
        ("YAML004", "empty-value", 8, 3),
        ("YAML004", "empty-value", 10, 1),
    ]
    assert read(text).problems[2].message == "`!!str` is a tag"


def test_an_empty_key() -> None:
    assert places("? \n: 1\n") == [("YAML007", "key-not-text", 1, 2)]


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "\ufeff", "%YAML 1.1\n---\n"])
def test_an_empty_file(text: str) -> None:
    assert [d.code for d in read(text).problems] == ["YAML004"]


def test_a_second_document() -> None:
    assert places("a: 1\n---\nb: 2\n") == [("YAML006", "second-document", 2, 1)]
    assert places("---\na: 1\n...\n") == []


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: 1\n\tb: 2\n", 2, 1),
        ("a: [1, 2\nb: 3\n", 2, 2),
        ('a: "open\n', 2, 1),
        ("a: b: c\n", 1, 5),
        ("a: \x00\n", 1, 4),
        ("a: 1\nb: \x1b[31m\n", 2, 4),
        ("a: ü\x07\n", 1, 5),
        ("a: @x\n", 1, 4),
        ("a: 1 # b\u2028c: 2\n", 1, 9),
        ("a: b\x85c\n", 1, 5),
        ("a: b # \u202ec\n", 1, 8),
        ("a: \u2066b\n", 1, 4),
        ("a: 1\nb: c\ufeffd\n", 2, 5),
        ("a: \udc80\n", 1, 4),
        ("a: 1\n" + "[" * 10_000, 2, 1),
        ("{a: " * 200, 1, 4 * MAX_DEPTH + 1),
    ],
)
def test_a_text_that_is_not_yaml(text: str, line: int, column: int) -> None:
    document = read(text)
    assert [(d.code, d.line) for d in document.problems] == [("YAML001", line)]
    assert document.root is None
    if "[" * 10 not in text:
        assert document.problems[0].column == column


def test_nesting_as_deep_as_allowed() -> None:
    assert read("[" * MAX_DEPTH + "]" * MAX_DEPTH).problems == []


def test_positions_with_a_byte_order_mark_and_carriage_returns() -> None:
    assert places("\ufeffa: 1\r\nb: yes\r\n") == [("YAML005", "ambiguous-value", 2, 4)]


@pytest.mark.parametrize("escape", [r"\e[31m", r"\x00", r"\a", r"\r", r"\x9b", r"\N", r"\x7f", r"\u202E"])
def test_control_characters_come_only_escaped_and_are_refused(escape: str) -> None:
    assert places(f'a: "{escape}"') == [("YAML009", "control-character", 1, 4)]
    assert places(f'"{escape}": 1') == [("YAML009", "control-character", 1, 1)]


def test_all_problems_of_a_text_at_once() -> None:
    text = "a: yes\na: 1\nb: &x 0x1\nc:\n"
    assert [d.code for d in read(text).problems] == ["YAML005", "YAML002", "YAML003", "YAML005", "YAML004"]


def test_a_huge_number_is_a_problem_and_not_a_crash() -> None:
    assert [d.code for d in read("a: " + "9" * 5000).problems] == ["YAML005"]


def test_a_long_text() -> None:
    document = read("a:\n" + "".join(f"  k{index}: [{index}, 0.5, x]\n" for index in range(20_000)))
    assert (document.problems, len(document.root["a"])) == ([], 20_000)


@given(st.text(max_size=40) | st.text(alphabet="0123456789.-+eExob_:TtZ ~ynNon{}[],#'\"|\n", max_size=12))
@settings(derandomize=True, max_examples=500)
def test_what_is_not_refused_is_what_the_standard_reader_reads(text: str) -> None:
    document = read(f"a: {text}")
    if document.problems:
        assert {found.file for found in document.problems} == {"f.yaml"}
    else:
        assert document.root == yaml.safe_load(f"a: {text}")


QUOTED = "quote the value"
ENDED = "the value ends before this position"
STRAY_ITEM = ("the item does not belong to a list above it", "indent it like the other items of its list")
CHECK = "check the quotes and brackets before it, or quote the whole value"
OPEN = "close it; write an apostrophe between single quotes twice"
TAB = ("the line is indented with a tab", "indent with spaces")
VALUED = "the line is a key, but the line above it already has a value"
AS_KEYS = "indent it like the keys above; a key is followed by `:` and a space"
DEEPER = ("the indentation matches no line above", "indent it like the keys that it belongs to")
NO_KEY = "a key is followed by `:` and a space"


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("a:\n\tb: 1\n", 2, *TAB),
        ("a:\n  b: 1\n\tc: 2\n", 3, *TAB),
        ("a:\n  b: x\n   c: 1\n", 3, VALUED, AS_KEYS),
        ("a:1\nb: 2\n", 2, VALUED, AS_KEYS),
        ("a: x: y\n", 1, "the line contains a second `: `", f"{QUOTED}, or write one key per line"),
        ("a:\n  b: 1\n c: 2\n", 3, *DEEPER),
        ("a:\n  - 1\n - 2\n", 3, *STRAY_ITEM),
        ("a: 1\n- b\n", 2, *STRAY_ITEM),
        (
            "- a\nb: 1\n", 2, "the line is among the items of a list, but has no `-`",
            "indent it like the key that it belongs to",
        ),
        ("a: [1, 2\nb: 3\n", 2, "the `[` that opens on line 1 is not closed", "write `]`"),
        ("a: {x: 1\nb: 2\n", 2, "the `{` that opens on line 1 is not closed", "write `}`"),
        ("a: {b: 1}}\n", 1, ENDED, CHECK),
        ("a: 'it's'\n", 1, ENDED, CHECK),
        ("a: 'x\nb: 2\n", 3, "the quote that opens on line 1 is not closed", OPEN),
        ("a: 1\nb\nc: 2\n", 2, "the line is neither `key: value` nor a value", NO_KEY),
        ("a: @x\n", 1, "unquoted text cannot begin with `@`", QUOTED),
        ("a: }\n", 1, "while parsing a block node did not find expected node content", None),
    ],
)  # fmt: skip
def test_the_mistakes_of_a_hand(text: str, line: int, message: str, hint: str | None) -> None:
    (found,) = parse(Source("f", text)).problems
    assert (found.code, found.line, found.message, found.hint) == ("YAML001", line, f"invalid YAML: {message}", hint)


def test_a_message_without_a_place() -> None:
    assert explain_syntax_error("a", "broken", "", None, None) == ("broken", None, None)


@pytest.mark.parametrize(
    ("line", "column", "new", "changed"),
    [
        (2, 1, "c", {1: 'c: "x" # é'}),
        (2, 4, "y", {1: "b: y # é"}),
        (3, 5, "g", {2: "d: {g: [1, 'é'], f: no}"}),
        (3, 12, '"h"', {2: 'd: {e: [1, "h"], f: no}'}),
        (3, 18, "g", {2: "d: {e: [1, 'é'], g: no}"}),
        (4, 4, "x", {}),  # a block of text
        (9, 1, "x", {}),
        (2, 2, "x", {}),
    ],
)
def test_one_scalar_is_replaced(line: int, column: int, new: str, changed: dict[int, str]) -> None:
    lines = ["# a", 'b: "x" # é', "d: {e: [1, 'é'], f: no}", "g: |", "  one", ""]
    expected = [changed.get(index, text) for index, text in enumerate(lines)]
    assert replace_scalar("\n".join(lines), line, column, new) == "\n".join(expected)


def test_a_scalar_before_a_syntax_error_is_replaced() -> None:
    assert replace_scalar("a: b\nc: [\n", 1, 1, "d") == "d: b\nc: [\n"
    assert replace_scalar("a: b\nc: [}\n", 2, 9, "d") == "a: b\nc: [}\n"


def foreign(text: str) -> list[Any]:
    documents, problem = parse_foreign(Source("x.yaml", text))
    assert problem is None
    return documents


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("a: 1\n---\n- b\n", [{"a": 1}, ["b"]]),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\n", [{"a": {"b": 1, "c": 2}, "d": {"c": 3, "b": 1}}]),
        ("a: {<<: [{b: 1}, {b: 2, c: 3}]}\n", [{"a": {"b": 1, "c": 3}}]),
        ("[yes, True, ~, null, '1', 1, 0.90, 1e3, !!str 5, 2026-01-01]", None),
        ("", []),
        ("1: a", [{"1": "a"}]),
    ],
)
def test_yaml_of_other_programs(text: str, documents: list[Any] | None) -> None:
    if documents is None:
        documents = [["yes", True, None, None, "1", 1, 0.90, "1e3", "5", "2026-01-01"]]
    assert foreign(text) == documents


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: *b", "the alias `*b` has no anchor"),
        ("a: &a [*a]", "the alias `*a` has no anchor"),
        ("a: 1\na: 2", "duplicate key `a`"),
        ("[" * 100, "nested too deeply"),
        ("{[a]: b}", "a key must be text"),
        ("a: [b", "the `[` that opens on line 1 is not closed"),
        (
            "a: &a {" + ", ".join(f"k{n}: 1" for n in range(1000)) + "}\n"
            + "".join(f"b{n}: {{<<: *a}}\n" for n in range(60)),
            "`<<` merges too many keys",
        ),
    ],
)  # fmt: skip
def test_yaml_of_other_programs_that_is_not_valid(text: str, message: str) -> None:
    _, problem = parse_foreign(Source("x.yaml", text))
    assert problem is not None
    assert message in problem.message


def test_entries_of_other_programs_have_positions() -> None:
    (root,) = foreign("a:\n- b\n- {c: d}\n")
    assert [(spot.value.line, spot.value.column) for spot in root["a"].spots] == [(1, 2), (2, 2)]
