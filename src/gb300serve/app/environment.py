"""The environment of the process: variables and standard input, read here and nowhere else."""

import errno
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TextIO

from gb300serve.core.diagnostics import Diagnostic
from gb300serve.core.files import expand_user

# At import, Pydantic searches every installed distribution for plugins, which takes 15 ms.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


# How the user runs this program: from a checkout it is not on PATH, and `scripts/gb300serve` names itself.
PROGRAM = os.environ.get("GB300SERVE_PROGRAM") or "gb300serve"


def standard_input() -> TextIO:
    """Raises OSError where it is closed: Python has no `sys.stdin` then."""
    if sys.stdin is None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return sys.stdin


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment variables that gb300serve uses. Secrets are read by name, at launch."""

    site: Path | None
    station: str | None
    recipes: tuple[Path, ...]
    config_home: Path
    state_home: Path
    docker_host: str | None
    docker_context: str | None
    no_color: bool
    python: Path
    variables: Mapping[str, str] = field(repr=False)


def read_environment(variables: Mapping[str, str] | None = None) -> Environment:
    """The environment of this process, or of a test."""
    found = os.environ if variables is None else variables
    home = expand_user(found.get("HOME") or "~")

    def directory(name: str, default: str) -> Path:
        value = Path(found.get(name) or home / default)
        return value if value.is_absolute() else home / default  # XDG: relative paths are ignored

    return Environment(
        site=expand_user(value) if (value := found.get("GB300SERVE_SITE")) else None,
        station=found.get("GB300SERVE_STATION") or None,
        recipes=tuple(expand_user(p) for p in found.get("GB300SERVE_RECIPES", "").split(os.pathsep) if p),
        config_home=directory("XDG_CONFIG_HOME", ".config"),
        state_home=directory("XDG_STATE_HOME", ".local/state"),
        docker_host=found.get("DOCKER_HOST") or None,
        docker_context=found.get("DOCKER_CONTEXT") or None,
        # no-color.org: present and not empty; a dumb terminal has no escape sequences.
        no_color=bool(found.get("NO_COLOR")) or found.get("TERM") == "dumb",
        python=Path(sys.executable),
        variables=found,
    )


class Console(Protocol):
    """Messages for the user. Results are returned to the command, never printed by a use case."""

    def hide(self, secrets: Iterable[str]) -> None:
        """Redact these values in all later output."""

    def message(self, text: str, style: str | None = None) -> None:
        """One line; `style` is error, warning, note, good, dim or bold."""

    def messages(self, texts: Iterable[str], style: str | None = None) -> None:
        """Several lines."""

    def diagnostics(self, found: Iterable[Diagnostic], style: str | None = None) -> None:
        """Findings with their place, the source line and the hint."""
