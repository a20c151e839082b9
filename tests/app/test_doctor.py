import socket
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from gb300serve.app.doctor import Doctor, for_launch
from gb300serve.app.services import Services
from gb300serve.app.workspace import Workspace, read_environment
from gb300serve.cli.console import Console
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.steps import AwaitReady, CreateContainer, StartContainer, Step, StopContainer
from gb300serve.preflight.run import MachineUnfitError
from gb300serve.preflight.subject import Own
from tests.support.bench_host import BenchHost, bench_host
from tests.support.fake_docker import inspected

ID = "0123456789abcdef" * 4


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[BenchHost]:
    with bench_host(tmp_path) as found:
        yield found


def services(bench: BenchHost) -> Services:
    console = Console(StringIO(), StringIO())
    return Services(Workspace(read_environment(bench.variables), console, (bench.home / "recipes",)))


def created(launch: Launch) -> tuple[Step, ...]:
    name = launch.name
    return (CreateContainer(launch.plan, launch.labels), StartContainer(name, name), AwaitReady(name, name))


def test_what_is_said_before_a_launch_that_may_go_on(bench: BenchHost) -> None:
    used = services(bench)
    launch = used.launch("v1", None, "docker")
    found = for_launch(used, launch, created(launch)).found
    assert {one.severity for one in found} <= {"note", "warning"}
    assert "PRE032" in {one.code for one in found}


def test_everything_that_blocks_is_said_at_once(bench: BenchHost) -> None:
    bench.nvidia_smi(used=200_000)
    (bench.home / "model" / "config.json").unlink()
    used = services(bench)
    launch = used.launch("v1", None, "docker")
    with pytest.raises(MachineUnfitError) as caught:
        for_launch(used, launch, created(launch))
    assert [one.code for one in caught.value.diagnostics] == ["PRE023", "PRE051"]
    again = f"gb300serve doctor v1 --recipes {bench.home / 'recipes'}"
    assert (caught.value.exit_code, caught.value.hint) == (6, again)


def test_a_lane_that_runs_is_left_alone(bench: BenchHost) -> None:
    (bench.home / "model" / "config.json").unlink()
    used = services(bench)
    launch = used.launch("v1", None, "docker")
    looked = for_launch(used, launch, (AwaitReady(ID, "bench", running=True),))
    assert (looked.found, looked.subject.release) == ((), None)


def test_what_the_steps_stop_holds_nothing_any_more(bench: BenchHost) -> None:
    command = ["--port", str(bench.port)]
    bench.docker.containers = [inspected(ID, "bench", command=command)]
    used = services(bench)
    launch = used.launch("v1", None, "docker")
    steps = (StopContainer(ID, "bench", 30.0), *created(launch))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", bench.port))
        listener.listen()
        assert all(one.severity != "error" for one in for_launch(used, launch, steps).found)
        with pytest.raises(MachineUnfitError) as caught:
            for_launch(used, launch, created(launch))
    assert [one.code for one in caught.value.diagnostics] == ["PRE071"]


def test_a_kept_container_needs_no_image(bench: BenchHost) -> None:
    bench.docker.images = {}
    used = services(bench)
    launch = used.launch("v1", None, "docker")
    steps = (StartContainer(ID, "bench", kept=True), AwaitReady(ID, "bench"))
    assert all(one.severity != "error" for one in for_launch(used, launch, steps).found)
    with pytest.raises(MachineUnfitError):
        for_launch(used, launch, created(launch))


def test_the_release_as_it_is_examined(bench: BenchHost) -> None:
    changes = ("engine.options.seed=3",)
    subject = Doctor(services(bench), "docker").examine("v1", changes, replace=False)
    assert subject.release is not None
    assert (subject.release.own, subject.release.refusal) == (Own(), None)
    assert subject.release.plan.recipe == "bench/v1+set"
    assert subject.release.fit == (f"gb300serve fit v1 --recipes {bench.home / 'recipes'} --set engine.options.seed=3")


def test_what_may_be_borne_warns(bench: BenchHost) -> None:
    bench.nvidia_smi(used=200_000)
    used = services(bench)
    launch = used.launch("v1", None, "docker")
    looked = for_launch(used, launch, created(launch), frozenset({"PRE023"}))
    assert [one.severity for one in looked.found if one.code == "PRE023"] == ["warning"]
