"""Secrets among the engine's words: by the option that they are given to, by their shape, or by reference."""

from typing import Any

from gb300serve.core.redaction import literal_secret
from gb300serve.importers.draft import MARK, Draft
from gb300serve.importers.syntax import ExpandedWord
from gb300serve.plan.secrets import SECRET_OPTIONS
from gb300serve.plan.words import secret_word

_NO_SECRETS = frozenset(("", "EMPTY", "None", "none", "null", "dummy"))


def option_value(draft: Draft, key: str, word: ExpandedWord, value: Any) -> Any:
    """The value of an option: `{secret: NAME}` for a secret and for what is read from a file at launch."""
    name = secret_name(draft, key, word.text)
    if name is not None:
        return {"secret": draft.for_option(name, word.text, word.place)}
    if isinstance(value, str):
        return draft.plain(value, word.place, f"--{key.replace('_', '-')}")
    return value


def word_value(draft: Draft, flag: str, word: ExpandedWord) -> str:
    """A word of extra_args; a secret stands there by its name. No table knows the flag: its name alone may convict."""
    name = secret_name(draft, flag.lstrip("-").replace("-", "_"), word.text, strict=False)
    if name is not None:
        return secret_word(draft.for_option(name, word.text, word.place))
    return draft.plain(word.text, word.place, flag or "a word")


def secret_name(draft: Draft, key: str, text: str, *, strict: bool = True) -> str | None:
    """The variable to hold the value in, when it is a secret; `strict`: one that looks random, or of a known option."""
    reference = draft.reference(text)
    secret = key in SECRET_OPTIONS and text not in _NO_SECRETS
    if reference is not None and (secret or reference.kind == "file"):
        return _variable(key)
    if reference is None and (secret or literal_secret(key, MARK.sub("", text), strict=strict) is not None):
        return _variable(key) if text[:1] not in "{[" else None
    return None


def _variable(key: str) -> str:
    plain = "".join(sign if sign.isalnum() and sign.isascii() else "_" for sign in key).upper().strip("_")
    return plain if plain and not plain[0].isdigit() else "SECRET"
