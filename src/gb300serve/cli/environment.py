"""The process's environment, read here and nowhere else."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gb300serve.cli.deferred import defer
from gb300serve.core.files import expanded

# Pydantic searches every installed distribution for plugins at import: 15 ms of start-up that nothing here uses.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
defer()


@dataclass(frozen=True, slots=True)
class Environment:
    """What the variables say. Values of secrets are looked up one by one, by name, at launch."""

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
    home = expanded(found.get("HOME") or "~")

    def directory(name: str, default: str) -> Path:
        value = Path(found.get(name) or home / default)
        return value if value.is_absolute() else home / default  # the XDG specification: relative ones are ignored

    return Environment(
        site=expanded(value) if (value := found.get("GB300SERVE_SITE")) else None,
        station=found.get("GB300SERVE_STATION") or None,
        recipes=tuple(expanded(p) for p in found.get("GB300SERVE_RECIPES", "").split(os.pathsep) if p),
        config_home=directory("XDG_CONFIG_HOME", ".config"),
        state_home=directory("XDG_STATE_HOME", ".local/state"),
        docker_host=found.get("DOCKER_HOST") or None,
        docker_context=found.get("DOCKER_CONTEXT") or None,
        # no-color.org: present and not empty; a dumb terminal knows no escape sequences.
        no_color=bool(found.get("NO_COLOR")) or found.get("TERM") == "dumb",
        python=Path(sys.executable),
        variables=found,
    )
