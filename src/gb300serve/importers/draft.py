"""A launch while it is read: the container's section, the secrets, and what references stand for."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gb300serve.core.redaction import HIDDEN, holds_secret, literal_secret
from gb300serve.importers.report import CLEAR_TEXT, NOT_TAKEN_OVER, PLACEHOLDER, REFERENCE, UNSET, Report, TextPosition
from gb300serve.importers.shell.words import CLOSE, OPEN, Reference

MARK = re.compile(f"{OPEN}([0-9]+){CLOSE}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILLED_IN = re.compile(r"(?i)<[^<>]+>|x{3,}|\.{3,}|…|\{+[^{}]+\}+")

ReadFile = Callable[[str], str | None]
"""The text of a file that the input names, None where it cannot be read."""


@dataclass(slots=True)
class Draft:
    """Everything read so far of one launch."""

    report: Report
    references: list[Reference] = field(default_factory=list)
    exported: Mapping[str, str] = field(default_factory=dict)
    directory: str = "/"
    read_file: ReadFile = lambda _: None
    container: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, dict[str, str]] = field(default_factory=dict)

    def reference(self, text: str) -> Reference | None:
        """What `text` stands for, when all of it is read at launch."""
        found = MARK.fullmatch(text)
        return self._of(found) if found else None

    def plain(self, text: str, at: TextPosition | None, what: str) -> str:
        """`text` with each reference as a shell writes it: a recipe has no word for it in this place."""

        def written(found: re.Match[str]) -> str:
            reference = self._of(found)
            if reference is None:
                return ""
            said = f"${reference.name}" if reference.kind == "env" else f"$(cat {reference.name})"
            message = f"{what} holds {said}, which nothing in the text sets"
            self.report.add(UNSET, message, "write the value into the recipe: it is kept here as it was said", at)
            return said

        return MARK.sub(written, text) if OPEN in text else text

    def variable(self, name: str, value: str, at: TextPosition | None) -> None:
        """A variable of the container: a plain one, or a secret by where its value is read."""
        if not VARIABLE.fullmatch(name):
            self.report.add(NOT_TAKEN_OVER, f"-e {name}: not the name of a variable", None, at)
        elif (reference := self.reference(value)) is not None:
            self.refer(name, reference, at)
        elif (kind := literal_secret(name, MARK.sub("", value))) is not None:
            self.hide(name, kind, value, at)
        elif holds_secret(name) and _FILLED_IN.fullmatch(value):
            self._awaited(name, at)
        else:
            self.secrets.pop(name, None)
            self.env[name] = self.plain(value, at, name)

    def passed_on(self, name: str, at: TextPosition | None) -> None:
        """`-e NAME`: the value that the client's environment has."""
        if name in self.exported:
            self.variable(name, self.exported[name], at)
        elif VARIABLE.fullmatch(name):
            self.refer(name, Reference("env", name), at)
        else:
            self.report.add(NOT_TAKEN_OVER, f"-e {name}: not the name of a variable", None, at)

    def refer(self, name: str, reference: Reference, at: TextPosition | None) -> None:
        """A secret whose value is read on the client at launch."""
        self.env.pop(name, None)
        self.secrets[name] = {reference.kind: reference.name}
        where = f"the variable {reference.name}" if reference.kind == "env" else f"the file {reference.name}"
        self.report.add(
            REFERENCE,
            f"{name} is a secret reference: read at launch from {where}",
            None,
            at,
            f"container.secrets.{name}",
        )

    def hide(self, name: str, kind: str, value: str, at: TextPosition | None) -> None:
        """A literal secret: only its name is kept."""
        self.report.hide(value)
        self.env.pop(name, None)
        self.secrets[name] = {"env": name}
        message = f"{name} holds {kind} in clear: it became a secret reference, and its value is kept nowhere"
        hint = (
            f"export {name} before a launch, or write {{file: /a/file}}; a secret that was published has to be renewed"
        )
        self.report.add(CLEAR_TEXT, message, hint, at, f"container.secrets.{name}")

    def _awaited(self, name: str, at: TextPosition | None) -> None:
        """A secret that the author left out."""
        self.env.pop(name, None)
        self.secrets[name] = {"env": name}
        message = f"{name} holds a placeholder for a secret: it became a secret reference"
        self.report.add(PLACEHOLDER, message, f"export {name} before a launch", at, f"container.secrets.{name}")

    def for_option(self, name: str, value: str, at: TextPosition | None) -> str:
        """The name of the secret that stands for an option's value."""
        reference = self.reference(value)
        if reference is None:
            while name in self.secrets or name in self.env:
                name += "_2"
            if _FILLED_IN.fullmatch(value):
                self._awaited(name, at)
            else:
                self.hide(name, "a secret", value, at)
            return name
        if reference.kind == "env":
            name = reference.name
        known = next((key for key, said in self.secrets.items() if said == {reference.kind: reference.name}), None)
        if known is None:
            self.refer(name, reference, at)
        return known or name

    def text(self, value: str, at: TextPosition | None, what: str) -> str:
        """A text for any other place: without references, and without what looks like a secret."""
        plain = self.plain(value, at, what)
        if literal_secret("", plain) is None:
            return plain
        self.report.hide(plain)
        self.report.add(
            CLEAR_TEXT, f"{what} holds a secret in clear: it was left out", "say it as a secret reference", at
        )
        return HIDDEN

    def _of(self, found: re.Match[str]) -> Reference | None:
        index = int(found[1])
        return self.references[index] if index < len(self.references) else None
