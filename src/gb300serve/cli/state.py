"""The state directory of this machine, and what is kept there."""

from pathlib import Path

from gb300serve.cli.workspace import Workspace
from gb300serve.core.files import expanded


def state_directory(space: Workspace) -> Path:
    """The site's `state`, else the user's own; it need not exist."""
    named = space.site(None).state
    return expanded(named) if named else space.environment.state_home / "gb300serve"


def learned_boots(space: Workspace) -> Path:
    """The boots that `fit --calibrate` has read."""
    return state_directory(space) / "boots.json"
