import pytest

from gb300serve.core.redaction import HIDDEN
from gb300serve.importers.draft import Draft
from gb300serve.importers.report import Report, TextPosition
from gb300serve.importers.shell.words import Reference, reference_mark

AT = TextPosition(4, 2)
TOKEN = "hf_Qw3rTy7uIoPaSdFgHjKl"


@pytest.fixture
def draft() -> Draft:
    return Draft(Report(), [Reference("env", "KEY"), Reference("file", "/k")], {"OUT": "3"})


def codes(draft: Draft) -> list[str]:
    return [found.code for found in draft.report.diagnostics]


def test_variables_plain_secret_and_referred_to(draft: Draft) -> None:
    draft.set_variable("A", "1", AT)
    draft.set_variable("HF_TOKEN", TOKEN, AT)
    draft.set_variable("B", reference_mark(0), AT)
    draft.set_variable("C", reference_mark(1), AT)
    draft.set_variable("D", f"x{reference_mark(0)}", AT)
    assert draft.env == {"A": "1", "D": "x$KEY"}
    assert draft.secrets == {"HF_TOKEN": {"env": "HF_TOKEN"}, "B": {"env": "KEY"}, "C": {"file": "/k"}}
    assert codes(draft) == ["IMP004", "IMP005", "IMP005", "IMP006"]
    assert not any(TOKEN in found.message for found in draft.report.diagnostics)


def test_the_last_of_a_repeated_variable_counts(draft: Draft) -> None:
    draft.set_variable("A", reference_mark(0), AT)
    draft.set_variable("A", "1", AT)
    assert (draft.env, draft.secrets) == ({"A": "1"}, {})
    draft.set_variable("A", reference_mark(1), AT)
    assert (draft.env, draft.secrets) == ({}, {"A": {"file": "/k"}})


def test_what_the_client_passes_on(draft: Draft) -> None:
    draft.pass_variable("OUT", AT)
    draft.pass_variable("ELSE", AT)
    draft.pass_variable("no-name", AT)
    assert (draft.env, draft.secrets) == ({"OUT": "3"}, {"ELSE": {"env": "ELSE"}})
    assert codes(draft) == ["IMP005", "IMP003"]


def test_secrets_of_options_share_what_is_the_same(draft: Draft) -> None:
    assert draft.option_secret("API_KEY", reference_mark(1), AT) == "API_KEY"
    assert draft.option_secret("OTHER", reference_mark(1), AT) == "API_KEY"
    assert draft.option_secret("API_KEY", "literal", AT) == "API_KEY_2"
    assert draft.option_secret("X", reference_mark(0), AT) == "KEY"
    assert draft.secrets == {"API_KEY": {"file": "/k"}, "API_KEY_2": {"env": "API_KEY_2"}, "KEY": {"env": "KEY"}}


def test_any_other_text_holds_neither_a_secret_nor_a_reference(draft: Draft) -> None:
    assert draft.redacted("plain", AT, "the image") == "plain"
    assert draft.redacted(f"a{reference_mark(1)}", AT, "the image") == "a$(cat /k)"
    assert draft.redacted(TOKEN, AT, "the image") == HIDDEN
    assert draft.as_written("\ue0009\ue001", AT, "x") == ""


@pytest.mark.parametrize("value", ["<secret>", "<your token>", "xxx", "...", "{{ HF_TOKEN }}"])
def test_a_placeholder_for_a_secret_is_a_reference(draft: Draft, value: str) -> None:
    draft.set_variable("HF_TOKEN", value, AT)
    draft.set_variable("MODE", value, AT)
    assert (draft.secrets, draft.env) == ({"HF_TOKEN": {"env": "HF_TOKEN"}}, {"MODE": value})
    assert draft.option_secret("API_KEY", value, AT) == "API_KEY"
    assert (codes(draft), draft.report.secrets) == (["IMP014", "IMP014"], [])
