import json
from io import StringIO

from gb300serve.cli.console import TerminalConsole
from gb300serve.core.values import WrittenFloat


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_results_and_messages_are_apart() -> None:
    out, err = StringIO(), StringIO()
    console = TerminalConsole(out, err)
    console.result("a result")
    console.message("a message", "error")
    assert (out.getvalue(), err.getvalue()) == ("a result\n", "a message\n")


def test_colour_is_for_terminals() -> None:
    out, err = Terminal(), Terminal()
    TerminalConsole(out, err).message("red", "error")
    TerminalConsole(out, err, no_color=True).message("plain", "error")
    TerminalConsole(out, err).message("plain")
    TerminalConsole(out, err).result("plain")
    assert (out.getvalue(), err.getvalue()) == ("plain\n", "\x1b[31mred\x1b[0m\nplain\nplain\n")


def test_escapes_from_outside_are_not_passed_on() -> None:
    out, err = Terminal(), Terminal()
    console = TerminalConsole(out, err)
    console.result("a\x1b[31mb\x9bc")
    console.message("a\x1b]0;title\x07b")
    console.document({"a": "\x1b[31m\x9b\x7f\x00ü"})
    assert err.getvalue() == "ab\n"
    assert out.getvalue() == 'abc\n{\n  "a": "\\u001b[31m\\u009b\\u007f\\u0000ü"\n}\n'


def test_numbers_in_documents_are_as_written() -> None:
    out = StringIO()
    TerminalConsole(out).document({"a": WrittenFloat("0.90")})
    assert out.getvalue() == '{\n  "a": 0.90\n}\n'


class Gone(StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_what_cannot_be_said_stops_nothing() -> None:
    out = StringIO()
    console = TerminalConsole(out, Gone())
    console.messages(["a", "b"], "error")
    console.result("c")
    assert out.getvalue() == "c\n"


def test_hidden_values_are_shown_nowhere() -> None:
    out, err = StringIO(), StringIO()
    console = TerminalConsole(out, err, no_color=True)
    console.hide(("s3cret-value",))
    console.result("server_args api_key='s3cret-value'")
    console.document({"schema": "x", "text": "s3cret-value"})
    console.message("--api-key s3cret-value is unknown")
    assert "s3cret" not in out.getvalue() + err.getvalue()
    assert "api_key='[secret]'" in out.getvalue()


def test_marks_of_direction_are_escaped_in_documents() -> None:
    out = StringIO()
    TerminalConsole(out).document({"text": "a\u202eb\u2066c\u200fd\x9be"})
    assert json.loads(out.getvalue()) == {"text": "a\u202eb\u2066c\u200fd\x9be"}
    assert out.getvalue().isascii()
