"""The state directory of this machine, and what is kept there."""

from pathlib import Path

from gb300serve.cli.workspace import Workspace
from gb300serve.core.files import expanded


def state_directory(space: Workspace) -> Path:
    """Runs, journal and locks: the site's `state`, else the user's own; a named Station's own below it."""
    home = _home(space)
    return home / "stations" / space.station if space.station else home


def learned_boots(space: Workspace) -> Path:
    """The boots that `fit --calibrate` has read: the same for every Station."""
    return _home(space) / "boots.json"


def _home(space: Workspace) -> Path:
    """It need not exist."""
    named = space.site(None).state
    return expanded(named) if named else space.environment.state_home / "gb300serve"
