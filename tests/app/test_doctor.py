import socket
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from gb300serve.app.doctor import NOTHING_BEARABLE, Doctor, PreflightResult, check_launch
from gb300serve.app.environment import read_environment
from gb300serve.app.hosts import Hosts
from gb300serve.app.launchable import PreparedLaunch, prepare
from gb300serve.app.state import StateDirectory
from gb300serve.app.workspace import Workspace
from gb300serve.cli.console import TerminalConsole
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.steps import AwaitReady, CreateContainer, StartContainer, Step, StopContainer
from gb300serve.preflight.run import MachineUnfitError
from gb300serve.preflight.subject import OwnResources
from tests.support.bench_host import BenchHost, bench_host
from tests.support.fake_docker import inspected

ID = "0123456789abcdef" * 4


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[BenchHost]:
    with bench_host(tmp_path) as found:
        yield found


def doctor(bench: BenchHost) -> Doctor:
    console = TerminalConsole(StringIO(), StringIO())
    workspace = Workspace(read_environment(bench.variables), console, (bench.home / "recipes",))
    return Doctor(workspace, Hosts(workspace), StateDirectory(workspace), "docker")


def prepared(used: Doctor) -> PreparedLaunch:
    return prepare(used.workspace, used.hosts, "v1", (), "docker")


def checked(used: Doctor, steps: tuple[Step, ...], bearable: frozenset[str] = NOTHING_BEARABLE) -> PreflightResult:
    return check_launch(used, prepared(used), steps, bearable)


def created(launch: Launch) -> tuple[Step, ...]:
    name = launch.name
    return (CreateContainer(launch.plan, launch.labels), StartContainer(name, name), AwaitReady(name, name))


def test_what_is_said_before_a_launch_that_may_go_on(bench: BenchHost) -> None:
    used = doctor(bench)
    launch = prepared(used).launch
    found = checked(used, created(launch)).found
    assert {one.severity for one in found} <= {"note", "warning"}
    assert "PRE032" in {one.code for one in found}


def test_everything_that_blocks_is_said_at_once(bench: BenchHost) -> None:
    bench.nvidia_smi(used=200_000)
    (bench.home / "model" / "config.json").unlink()
    used = doctor(bench)
    launch = prepared(used).launch
    with pytest.raises(MachineUnfitError) as caught:
        checked(used, created(launch))
    assert [one.code for one in caught.value.diagnostics] == ["PRE023", "PRE051"]
    again = f"gb300serve doctor v1 --recipes {bench.home / 'recipes'}"
    assert (caught.value.exit_code, caught.value.hint) == (6, again)


def test_a_lane_that_runs_is_left_alone(bench: BenchHost) -> None:
    (bench.home / "model" / "config.json").unlink()
    used = doctor(bench)
    looked = checked(used, (AwaitReady(ID, "bench", running=True),))
    assert (looked.found, looked.subject.release) == ((), None)


def test_what_the_steps_stop_holds_nothing_any_more(bench: BenchHost) -> None:
    command = ["--port", str(bench.port)]
    bench.docker.containers = [inspected(ID, "bench", command=command)]
    used = doctor(bench)
    launch = prepared(used).launch
    steps = (StopContainer(ID, "bench", 30.0), *created(launch))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", bench.port))
        listener.listen()
        assert all(one.severity != "error" for one in checked(used, steps).found)
        with pytest.raises(MachineUnfitError) as caught:
            checked(used, created(launch))
    assert [one.code for one in caught.value.diagnostics] == ["PRE071"]


def test_a_kept_container_needs_no_image(bench: BenchHost) -> None:
    bench.docker.images = {}
    used = doctor(bench)
    launch = prepared(used).launch
    steps = (StartContainer(ID, "bench", kept=True), AwaitReady(ID, "bench"))
    assert all(one.severity != "error" for one in checked(used, steps).found)
    with pytest.raises(MachineUnfitError):
        checked(used, created(launch))


def test_the_release_as_it_is_examined(bench: BenchHost) -> None:
    changes = ("engine.options.seed=3",)
    subject = doctor(bench).examine("v1", changes, replace=False)
    assert subject.release is not None
    assert (subject.release.own, subject.release.refusal) == (OwnResources(), None)
    assert subject.release.plan.recipe == "bench/v1+set"
    assert subject.release.fit == (f"gb300serve fit v1 --recipes {bench.home / 'recipes'} --set engine.options.seed=3")


def test_what_may_be_borne_warns(bench: BenchHost) -> None:
    bench.nvidia_smi(used=200_000)
    used = doctor(bench)
    launch = prepared(used).launch
    looked = checked(used, created(launch), frozenset({"PRE023"}))
    assert [one.severity for one in looked.found if one.code == "PRE023"] == ["warning"]
