import pytest

from gb300serve.document.nodes import Source
from gb300serve.document.read import explained, parse

QUOTED = "write the value between quotes"
ENDED = "the value ends before this"
CHECK = f"check quotes and brackets before it, or {QUOTED.replace('the value', 'all of it')}"
OPEN = "close it; an apostrophe between single quotes is doubled"
TAB = ("a tab stands where the line is indented", "indent with blanks")
VALUED = "this line is a key, and the line above it has a value already"
AS_KEYS = "indent it as the keys above; a key is followed by `:` and a blank"
DEEPER = ("this line is indented as none above it", "indent it as the keys that it belongs to")
NO_KEY = "a key is followed by `:` and a blank"


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("a:\n\tb: 1\n", 2, *TAB),
        ("a:\n  b: 1\n\tc: 2\n", 3, *TAB),
        ("a:\n  b: x\n   c: 1\n", 3, VALUED, AS_KEYS),
        ("a:1\nb: 2\n", 2, VALUED, AS_KEYS),
        ("a: x: y\n", 1, "a second `: ` stands on this line", f"{QUOTED}, or a key a line"),
        ("a:\n  b: 1\n c: 2\n", 3, *DEEPER),
        ("a:\n  - 1\n - 2\n", 3, "this entry is in no list above it", "indent it as the other entries of its list"),
        ("a: 1\n- b\n", 2, "this entry is in no list above it", "indent it as the other entries of its list"),
        (
            "- a\nb: 1\n", 2, "this line stands among the entries of a list and has no `-`",
            "indent it as the key that it belongs to",
        ),
        ("a: [1, 2\nb: 3\n", 2, "the `[` that opens on line 1 is not closed", "write `]`"),
        ("a: {x: 1\nb: 2\n", 2, "the `{` that opens on line 1 is not closed", "write `}`"),
        ("a: {b: 1}}\n", 1, ENDED, CHECK),
        ("a: 'it's'\n", 1, ENDED, CHECK),
        ("a: 'x\nb: 2\n", 3, "the quote that opens on line 1 is not closed", OPEN),
        ("a: 1\nb\nc: 2\n", 2, "this line is neither `key: value` nor a value", NO_KEY),
        ("a: @x\n", 1, "no plain text begins with `@`", QUOTED),
        ("a: }\n", 1, "while parsing a block node did not find expected node content", None),
    ],
)  # fmt: skip
def test_the_mistakes_of_a_hand(text: str, line: int, message: str, hint: str | None) -> None:
    (found,) = parse(Source("f", text)).problems
    assert (found.code, found.line, found.message, found.hint) == (
        "YAML001",
        line,
        f"this is not YAML: {message}",
        hint,
    )


def test_a_message_without_a_place() -> None:
    assert explained("a", "broken", "", None, None) == ("broken", None, None)
