"""Diagnostics as workflow commands of GitHub Actions: annotations in the pull request."""

from collections.abc import Iterable, Iterator

from gb300serve.core.diagnostics import Diagnostic

_LEVEL = {"error": "error", "warning": "warning", "note": "notice"}


def lines(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    """One command a diagnostic; source: GitHub's documentation of workflow commands."""
    for found in diagnostics:
        places = (("file", found.file), ("line", found.line), ("col", found.column))
        properties = [f"{key}={_property(str(value))}" for key, value in places if value is not None]
        properties.append(f"title={_property(f'{found.code} {found.name}')}")
        text = found.message + (f"\n{found.hint}" if found.hint else "")
        yield f"::{_LEVEL[found.severity]} {','.join(properties)}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
