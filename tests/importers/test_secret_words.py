import pytest

from gb300serve.importers.draft import Draft
from gb300serve.importers.engine_options import option_value, secret_name, word_value
from gb300serve.importers.report import Report, TextPosition
from gb300serve.importers.shell.words import ExpandedWord, Reference, mark

AT = TextPosition(1, 1)


@pytest.fixture
def draft() -> Draft:
    return Draft(Report(), [Reference("env", "KEY"), Reference("file", "/k")])


@pytest.mark.parametrize(
    ("key", "text", "name"),
    [
        ("api_key", "abc", "API_KEY"),
        ("api_key", "EMPTY", None),
        ("api_key", mark(0), "API_KEY"),
        ("chat_template", mark(1), "CHAT_TEMPLATE"),
        ("chat_template", mark(0), None),
        ("chat_template", "a", None),
        ("chat_template", "hf_Qw3rTy7uIoPaSdFgHjKl", "CHAT_TEMPLATE"),
        ("9lives", mark(1), "SECRET"),
    ],
)
def test_which_values_are_secrets(draft: Draft, key: str, text: str, name: str | None) -> None:
    assert secret_name(draft, key, text) == name


def test_how_a_recipe_says_them(draft: Draft) -> None:
    assert option_value(draft, "api_key", ExpandedWord("abc", AT), "abc") == {"secret": "API_KEY"}
    assert option_value(draft, "port", ExpandedWord("3", AT), 3) == 3
    assert option_value(draft, "chat_template", ExpandedWord(f"x{mark(0)}", AT), f"x{mark(0)}") == "x$KEY"
    assert word_value(draft, "--new-api-key", ExpandedWord(mark(1), AT)) == "${secret:NEW_API_KEY}"
    assert word_value(draft, "--new", ExpandedWord("3", AT)) == "3"


def test_the_name_of_an_unknown_flag_is_enough(draft: Draft) -> None:
    assert word_value(draft, "--admin-api-key", ExpandedWord("hunter2", AT)) == "${secret:ADMIN_API_KEY}"
    assert draft.secrets == {"ADMIN_API_KEY": {"env": "ADMIN_API_KEY"}}
    assert word_value(draft, "--pad-token", ExpandedWord("<pad>", AT)) == "<pad>"
    assert secret_name(draft, "session_token", "plain") is None
