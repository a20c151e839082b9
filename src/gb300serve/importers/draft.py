"""A launch while it is being read: the container section, its variables and secrets."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gb300serve.core.redaction import HIDDEN, holds_secret, is_placeholder, literal_secret
from gb300serve.importers.report import (
    CLEAR_TEXT,
    NOT_TAKEN_OVER,
    PLACEHOLDER,
    REFERENCE,
    UNSET,
    Report,
    TextPosition,
    UnresolvedError,
    shorten,
)
from gb300serve.importers.shell.words import CLOSE, OPEN, Reference, reference_mark

MARK = re.compile(f"{OPEN}([0-9]+){CLOSE}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME_HINT = "use letters, digits and `_`, not starting with a digit"

ReadFile = Callable[[str], str | None]
"""The text of a file that the input names; None if it cannot be read."""


@dataclass(slots=True)
class Draft:
    """What was read of a launch so far."""

    report: Report
    references: list[Reference] = field(default_factory=list)
    exported: Mapping[str, str] = field(default_factory=dict)
    directory: str = "/"
    read_file: ReadFile = lambda _: None
    container: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)
    nodes: int = 1
    """The number of machines that serve the model together."""
    _marks: dict[str, str] = field(default_factory=dict)
    missing: dict[str, tuple[TextPosition | None, str]] = field(default_factory=dict)
    """The variables that the text does not set and that a number needs, each with the place and the option."""

    def require(self, text: str, at: TextPosition | None, flag: str) -> bool:
        """Whether a number contains variables that the text does not set: the recipe needs their values."""
        references = [reference for match in MARK.finditer(text) if (reference := self._resolve(match)) is not None]
        for reference in references:
            self.missing.setdefault(reference.name, (at, flag))
        return bool(references)

    def first_reference(self, text: str) -> Reference | None:
        """The first reference in `text`, if any."""
        return next(filter(None, map(self._resolve, MARK.finditer(text))), None)

    def reference(self, text: str) -> Reference | None:
        """The reference that `text` consists of, if any."""
        match = MARK.fullmatch(text)
        return self._resolve(match) if match else None

    def launch_value(self, name: str) -> str:
        """The mark of a value that the launch reads from the variable `name` of its caller."""
        if name not in self._marks:
            self._marks[name] = reference_mark(len(self.references))
            self.references.append(Reference("env", name))
        return self._marks[name]

    def as_written(self, text: str, at: TextPosition | None, subject: str) -> str:
        """`text` with references in shell syntax, where a recipe cannot express them."""

        def shell_text(match: re.Match[str]) -> str:
            if (reference := self._resolve(match)) is None:
                return ""
            written = f"${reference.name}" if reference.kind == "env" else f"$(cat {reference.name})"
            if reference.settings is not None:
                file, place = reference.settings
                reason = f"{subject} contains {written}, which only {shorten(file)} (line {place.line}) can set"
                hint = f"put {shorten(file)} beside the text, or write `{reference.name}=…` on a line above the launch"
                raise UnresolvedError(f"{reason}: that file is not here", at or place, hint)
            message = f"{subject} contains {written}, which the text does not set"
            self.report.add(UNSET, message, "it was kept as written: replace it by the value in the recipe", at)
            return written

        return MARK.sub(shell_text, text) if OPEN in text else text

    def set_variable(self, name: str, value: str, at: TextPosition | None) -> None:
        """Set a variable of the container; secrets become references."""
        if not VARIABLE.fullmatch(name):
            self.report.add(NOT_TAKEN_OVER, f"-e {name}: not a valid variable name", _NAME_HINT, at)
        elif (reference := self.reference(value)) is not None:
            self.add_reference(name, reference, at)
        elif holds_secret(name) and is_placeholder(value):
            self._add_placeholder(name, at)
        elif (kind := literal_secret(name, MARK.sub("", value))) is not None:
            self.add_literal_secret(name, kind, value, at)
        else:
            self.secrets.pop(name, None)
            self.env[name] = self.as_written(value, at, name)

    def pass_variable(self, name: str, at: TextPosition | None) -> None:
        """`-e NAME`: the value comes from the environment of `docker run`."""
        if name in self.exported:
            self.set_variable(name, self.exported[name], at)
        elif VARIABLE.fullmatch(name):
            self.add_reference(name, Reference("env", name), at)
        else:
            self.report.add(NOT_TAKEN_OVER, f"-e {name}: not a valid variable name", _NAME_HINT, at)

    def add_reference(self, name: str, reference: Reference, at: TextPosition | None) -> None:
        """A secret whose value is read at launch."""
        self.env.pop(name, None)
        self.secrets[name] = {reference.kind: reference.name}
        source = f"the variable {reference.name}" if reference.kind == "env" else f"the file {reference.name}"
        message = f"{name} became a secret reference: its value is read at launch from {source}"
        self.report.add(REFERENCE, message, None, at, f"container.secrets.{name}")

    def add_literal_secret(self, name: str, kind: str, value: str, at: TextPosition | None) -> None:
        """Keep only the name of a literal secret."""
        self.report.hide(value)
        self.env.pop(name, None)
        self.secrets[name] = {"env": name}
        message = f"{name} contains {kind} as plain text: it became a secret reference, without its value"
        hint = f"export {name} before the launch, or write {{file: /a/file}}. Replace a secret that was published"
        self.report.add(CLEAR_TEXT, message, hint, at, f"container.secrets.{name}")

    def _add_placeholder(self, name: str, at: TextPosition | None) -> None:
        self.env.pop(name, None)
        self.secrets[name] = {"env": name}
        message = f"the value of {name} is a placeholder for a secret: it became a secret reference"
        self.report.add(PLACEHOLDER, message, f"export {name} before the launch", at, f"container.secrets.{name}")

    def option_secret(self, name: str, value: str, at: TextPosition | None) -> str:
        """The name of the secret that replaces the value of an option."""
        if (reference := self.reference(value)) is None:
            while name in self.secrets or name in self.env:
                name += "_2"
            if is_placeholder(value):
                self._add_placeholder(name, at)
            else:
                self.add_literal_secret(name, "a secret", value, at)
            return name
        if reference.kind == "env":
            name = reference.name
        source = {reference.kind: reference.name}
        known = next((key for key, value in self.secrets.items() if value == source), None)
        if known is None:
            self.add_reference(name, reference, at)
        return known or name

    def redacted(self, value: str, at: TextPosition | None, subject: str) -> str:
        """`value` as written, or HIDDEN if it looks like a secret."""
        written = self.as_written(value, at, subject)
        if literal_secret("", written) is None:
            return written
        self.report.hide(written)
        message = f"{subject} contains a secret as plain text: it was left out"
        self.report.add(CLEAR_TEXT, message, "use a secret reference", at)
        return HIDDEN

    def _resolve(self, match: re.Match[str]) -> Reference | None:
        index = int(match[1])
        return self.references[index] if index < len(self.references) else None
