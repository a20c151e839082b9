"""Stations of a site without a Docker Engine: their simulated Stations, and what is said of those that are silent."""

import os
from pathlib import Path

import pytest

from tests.support.forked import Forked
from tests.support.program import Program
from tests.support.ssh import SILENT, ssh_stand_in

SITE = """\
format: gb300serve.site/1
default_lane: deepseek-v4.1-flash
stations:
  east: {docker: {host: "ssh://east.example"}}
  west: {docker: {host: "unix:///nonexistent/docker.sock"}}
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    (tmp_path / "bin").mkdir()
    ssh_stand_in(tmp_path / "bin", {"east.example": SILENT})
    (tmp_path / "site.yaml").write_text(SITE)
    return Forked(
        tmp_path,
        {
            "GB300SERVE_SITE": str(tmp_path / "site.yaml"),
            "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "DOCKER_HOST": f"unix://{tmp_path}/none.sock",
        },
    )


def test_silent_stations_hide_nothing(program: Program, port: int) -> None:
    nobody = program.run("status", "--all", "--deadline", "2")
    assert (nobody.code, nobody.err.splitlines()[-1]) == (7, "2 of 3 stations did not answer: east, west")
    assert nobody.out.splitlines() == [
        "STATION  LANE  RELEASE  ON      STATE      PHASE  CONTAINER  SINCE (UTC)",
        "east     -     -        docker  no answer  -      -          -",
        "west     -     -        docker  no answer  -      -          -",
        "  east: ssh://east.example did not answer within 2 s",
        "  west: no Docker Engine answers at unix:///nonexistent/docker.sock: No such file or directory",
    ]
    up = program.run(
        "up", "v14", "--on", "sim", "--station", "west", "--detach", "--set", f"engine.options.port={port}"
    )
    assert up.code == 0, up.err
    assert "--station west" in up.err
    status = program.run("status", "--all", "--json", "--deadline", "3")
    assert (status.code, [(one["station"], one["on"]) for one in status.document["lanes"]]) == (7, [("west", "sim")])
    down = program.run("down", "--station", "west", "--on", "sim", "--remove")
    assert down.code == 0, down.err
    again = program.run("down", "--station", "west", "--on", "sim")
    assert (again.code, again.err.splitlines()[-1]) == (6, "  hint: gb300serve status --station west")
    (run,) = (program.home / ".local/state/gb300serve/stations/west/runs").iterdir()
    assert '"station": "west"' in (run / "run.json").read_text()


def test_what_is_no_station(program: Program) -> None:
    answer = program.run("status", "--station", "wset")
    assert (answer.code, answer.err.splitlines()) == (
        2,
        ["gb300serve: station wset not found", "  hint: did you mean west?"],
    )
    assert program.run("status", "--all", "--station", "west").code == 2
