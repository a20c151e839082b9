from io import StringIO
from pathlib import Path

import pytest

from gb300serve.app.services import Services
from gb300serve.app.workspace import Workspace, read_environment
from gb300serve.cli.console import Console
from gb300serve.core.errors import CompileError
from tests.support.recipes import ENGINE, alone, write

NVIDIA_SMI = "#!/bin/sh\necho 'GPU 0: NVIDIA GB300 (UUID: GPU-1a2b3c4d-0000-0000-0000-000000000000)'\n"
UUID = "GPU-1a2b3c4d-0000-0000-0000-000000000000"


def services(directory: Path, site: str, **variables: str) -> Services:
    file = directory / "site.yaml"
    file.write_text(f"format: gb300serve.site/1\n{site}")
    environment = read_environment({"HOME": str(directory), "DOCKER_CONFIG": str(directory), **variables})
    return Services(Workspace(environment, Console(StringIO(), StringIO()), (directory / "recipes",), file))


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
    found = services(tmp_path, site)
    assert (found.address("docker"), found.is_here("docker")) == (address, is_here)
    assert (found.address("sim"), found.is_here("sim")) == ("127.0.0.1", True)
    assert (found.listeners("docker") is None) == (found.remains("docker") is None) == (not is_here)


def test_the_gpus_of_this_machine_are_not_those_of_a_remote_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = alone("container: {name: bench, network: host, gpus: {name: GB300}}\n" + ENGINE)
    write(tmp_path / "recipes", {"v1": text})
    program = tmp_path / "nvidia-smi"
    program.write_text(NVIDIA_SMI)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    here = services(tmp_path, "docker: {host: unix:///d.sock}")
    assert here.launch("bench/v1", None, "docker").plan.container.gpus == f"device={UUID}"
    with pytest.raises(CompileError, match="the site does not define its UUID"):
        services(tmp_path, "docker: {host: 'ssh://station'}").launch("bench/v1", None, "docker")


def test_simulated_lanes_here_take_no_port_of_a_remote_machine(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    (tmp_path / "state" / "gb300serve" / "sim").mkdir(parents=True)
    state = str(tmp_path / "state")
    assert len(services(tmp_path, "docker: {host: unix:///d.sock}", XDG_STATE_HOME=state).neighbours("docker")) == 1
    assert services(tmp_path, "docker: {host: 'ssh://station'}", XDG_STATE_HOME=state).neighbours("docker") == ()
