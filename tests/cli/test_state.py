from io import StringIO
from pathlib import Path

from gb300serve.app.workspace import Workspace, learned_boots, read_environment, state_directory
from gb300serve.cli.console import Console


def space(site: Path | None, **variables: str) -> Workspace:
    return Workspace(read_environment({"HOME": "/home/x", **variables}), Console(StringIO(), StringIO()), (), site)


def test_the_users_own_unless_the_site_names_one(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("format: gb300serve.site/1\nstate: /var/lib/serve\n")
    assert state_directory(space(None)) == Path("/home/x/.local/state/gb300serve")
    assert state_directory(space(None, XDG_STATE_HOME="/s")) == Path("/s/gb300serve")
    assert learned_boots(space(site)) == Path("/var/lib/serve/boots.json")


def test_a_named_station_has_its_own_and_shares_what_was_learned(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("format: gb300serve.site/1\nstate: /var/lib/serve\nstations: {east: {}}\n")
    east = space(site).at("east")
    assert state_directory(east) == Path("/var/lib/serve/stations/east")
    assert learned_boots(east) == Path("/var/lib/serve/boots.json")
