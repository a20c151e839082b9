"""The texts in which pydantic refuses a value: what the engine prints when a configuration class says no."""

from collections.abc import Sequence

from gb300serve.core.values import Value

_DOCS = "https://errors.pydantic.dev/2.13/v"


def validation_text(title: str, lines: Sequence[str]) -> str:
    """The whole message for the class `title`."""
    return "\n".join((f"{len(lines)} validation error{'s' if len(lines) != 1 else ''} for {title}", *lines))


def validation_line(code: str, reason: str, value: Value, field: str = "") -> str:
    """One error: the field it is about (none for the whole), the reason, and where it is documented."""
    shown = f"[type={code}, input_value={value!r}, input_type={type(value).__name__}]"
    place = f"{field}\n" if field else ""
    return f"{place}  {reason} {shown}\n    For further information visit {_DOCS}/{code}"


def unexpected(key: str, value: Value) -> str:
    """The error for a key that a configuration class does not have."""
    return validation_line("unexpected_keyword_argument", "Unexpected keyword argument", value, key)
