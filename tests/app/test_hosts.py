from io import StringIO
from pathlib import Path

import pytest

from gb300serve.app.environment import read_environment
from gb300serve.app.hosts import Hosts
from gb300serve.app.launchable import prepare
from gb300serve.app.workspace import Workspace
from gb300serve.cli.console import TerminalConsole
from gb300serve.core.errors import BackendError, CompileError
from tests.support.recipes import ENGINE, alone, write

NVIDIA_SMI = "#!/bin/sh\necho 'GPU 0: NVIDIA GB300 (UUID: GPU-1a2b3c4d-0000-0000-0000-000000000000)'\n"
UUID = "GPU-1a2b3c4d-0000-0000-0000-000000000000"


def hosts(directory: Path, site: str, **variables: str) -> Hosts:
    file = directory / "site.yaml"
    file.write_text(f"format: gb300serve.site/1\n{site}")
    environment = read_environment({"HOME": str(directory), "DOCKER_CONFIG": str(directory), **variables})
    return Hosts(Workspace(environment, TerminalConsole(StringIO(), StringIO()), (directory / "recipes",), file))


@pytest.mark.parametrize(
    ("site", "address", "is_here"),
    [
        ("docker: {host: unix:///d.sock}", "127.0.0.1", True),
        ("docker: {host: 'ssh://me@station:22'}", "station", False),
        ("docker: {host: 'tcp://10.0.0.7:2376'}\naddress: 10.1.0.7", "10.1.0.7", False),
        ("docker: {context: there-is-none}", "127.0.0.1", True),
    ],
)
def test_where_lanes_are_reached(site: str, address: str, is_here: bool, tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    found = hosts(tmp_path, site)
    assert (found.address("docker"), found.is_local("docker")) == (address, is_here)
    assert (found.address("sim"), found.is_local("sim")) == ("127.0.0.1", True)
    if "context" in site:
        with pytest.raises(BackendError):
            found.at("docker")
    else:
        host = found.at("docker")
        assert (host.listeners is None) == (host.residue is None) == (not is_here)


def test_the_gpus_of_this_machine_are_not_those_of_a_remote_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = alone("container: {name: bench, network: host, gpus: {name: GB300}}\n" + ENGINE)
    write(tmp_path / "recipes", {"v1": text})
    program = tmp_path / "nvidia-smi"
    program.write_text(NVIDIA_SMI)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    here = hosts(tmp_path, "docker: {host: unix:///d.sock}")
    prepared = prepare(here.workspace, here, "bench/v1", (), "docker")
    assert prepared.launch.plan.container.gpus == f"device={UUID}"
    there = hosts(tmp_path, "docker: {host: 'ssh://station'}")
    with pytest.raises(CompileError, match="the site does not know its UUID"):
        prepare(there.workspace, there, "bench/v1", (), "docker")


def test_simulated_lanes_here_take_no_port_of_a_remote_machine(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "state" / "gb300serve" / "sim").mkdir(parents=True)
    state = str(tmp_path / "state")
    assert len(hosts(tmp_path, "docker: {host: unix:///d.sock}", XDG_STATE_HOME=state).neighbours("docker")) == 1
    assert hosts(tmp_path, "docker: {host: 'ssh://station'}", XDG_STATE_HOME=state).neighbours("docker") == ()
