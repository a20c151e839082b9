import json
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from gb300serve.adapters.process import SystemProcesses
from gb300serve.adapters.system import SystemClock
from gb300serve.core.errors import BackendError, CommandLineError
from gb300serve.lifecycle.backend import Container
from gb300serve.plan.model import ContainerPlan, Mount, Plan, Secret
from gb300serve.simulator.station import Rehearsal, SimulatedStation
from tests.support.backend_contract import EVERY, LABELS, BackendContract, texts
from tests.support.free_port import free_port
from tests.support.simulated import V14, V14_MOUNTS

FAST = 20_000.0


def plan_of(name: str, *command: str, port: int, **options: object) -> Plan:
    container = ContainerPlan(
        name=name, gpus="all", ipc="host", network="host", env={"A": "b c", "PYTHONPATH": "/w"}, mounts=V14_MOUNTS
    )
    return Plan(
        recipe="deepseek-v4.1-flash/v14",
        lane="deepseek-v4.1-flash",
        release="v14",
        engine="vllm",
        engine_version="0.1.dev20904+g179dd0fa9",
        image="vllm/vllm-openai:deepseekv41-flash-0909@sha256:00d5",
        image_id=None,
        container=replace(container, **options),  # type: ignore[arg-type]  # any field of it
        command=command,
        served_names=("dsv41-flash-uva",),
        port=port,
        model_path="/models/DeepSeek-V4.1-Flash-df42c109f1defefcbfcedbe7d905718a12266e40",
    )


def station_of(directory: Path, rehearsal: Rehearsal) -> Iterator[SimulatedStation]:
    """Ends what the test left."""
    station = SimulatedStation(directory, SystemProcesses(), SystemClock(), sys.executable, rehearsal)
    yield station
    for container in station.containers():
        station.stop(container.id, 0.0)


@pytest.fixture
def station(tmp_path: Path) -> Iterator[SimulatedStation]:
    yield from station_of(tmp_path / "sim", Rehearsal(FAST))


@pytest.fixture
def plan() -> Plan:
    port = free_port()
    return plan_of("gb300test-sim", *V14, "--port", str(port), port=port)


def found(station: SimulatedStation, name: str) -> Container:
    container = station.find(name)
    assert container is not None
    return container


class TestSimulatedStation(BackendContract):
    @pytest.fixture
    def backend(self, tmp_path: Path) -> Iterator[SimulatedStation]:
        lacks = frozenset({"nobody/has-this:at-all"})
        yield from station_of(
            tmp_path / "sim", Rehearsal(FAST, lacks_images=lacks, has_path=lambda path: Path(path).exists())
        )

    @pytest.fixture
    def plan(self) -> Plan:
        port = free_port()
        return plan_of("gb300test-sim", *V14, "--port", str(port), port=port)

    @pytest.fixture
    def failing_plan(self) -> Plan:
        return plan_of("gb300test-sim-failing", *V14, "--no-such-option", port=1)


def test_kind_and_faults(tmp_path: Path) -> None:
    for fault, refused in ((None, False), ("host-oom", False), ("no-such-fault", True)):
        station = SimulatedStation(tmp_path / "x", SystemProcesses(), SystemClock(), "python", Rehearsal(fault=fault))
        assert station.kind == "sim"
        if refused:
            with pytest.raises(CommandLineError, match="no-such-fault"):
                station.check()
        else:
            station.check()
    assert list(tmp_path.iterdir()) == []


def test_everything_is_there_by_default(station: SimulatedStation, plan: Plan) -> None:
    image = station.image("vllm/vllm-openai:deepseekv41-flash-0909@sha256:00d5")
    assert image is not None
    assert (image.digests, image.architecture) == (("vllm/vllm-openai@sha256:00d5",), "arm64")
    assert image.entrypoint == ("vllm", "serve")
    local = station.image("localhost:5000/a/b")
    assert local is not None
    assert local.digests == ()
    assert station.missing_sources(plan) == ()


def test_the_other_engine_boots_in_its_own_words(station: SimulatedStation, plan: Plan) -> None:
    words = ("python3", "-m", "sglang.launch_server", "--model-path", "/model", "--port", str(plan.port))
    launched = replace(plan, engine="sglang", engine_version="0.5.23", command=words, model_path="/models/unknown")
    created = station.create(launched, LABELS, {})
    station.start(created)
    for line in station.follow(created, 0.1):
        if line is not None and "fired up" in line.text:
            break
    assert "server_args=" in "".join(line.text for line in station.log(created))
    station.stop(created, 30.0)
    ended = station.find(created)
    assert ended is not None
    assert (ended.state, ended.exit_code) == ("exited", 0)
    assert "Gracefully exiting..." in "".join(line.text for line in station.log(created))


def test_secrets_reach_the_command_and_the_environment_and_no_other_eye(
    station: SimulatedStation, plan: Plan, tmp_path: Path
) -> None:
    secret = Secret("KEY", env="KEY")
    plan = replace(
        plan,
        command=(*plan.command, "--api-key", "${secret:KEY}"),
        container=replace(plan.container, secrets=(secret,)),
    )
    identity = station.create(plan, LABELS, {"KEY": "s3cret"})
    container = found(station, identity)
    assert container.command[-2:] == ("--api-key", "s3cret")
    assert container.env["KEY"] == "s3cret"
    home = tmp_path / "sim" / "containers" / identity
    assert [oct(path.stat().st_mode)[-3:] for path in (home, home / "container.json")] == ["700", "600"]


def test_a_boot_follows_the_plan_and_a_stop_is_clean(station: SimulatedStation, plan: Plan) -> None:
    name = plan.container.name
    station.create(plan, LABELS, {})
    station.start(name)
    followed = texts(station.follow(name, EVERY))
    seen = []
    for text in followed:
        seen.append(text)
        if "Application startup complete." in text:
            break
    assert any("Total CPU offloaded parameters: 61.17" in text for text in seen)
    assert any("Loaded 210 configs" in text for text in seen)
    station.start(name)
    station.stop(name, 30.0)
    assert list(followed)[-1].endswith("INFO:     Finished server process [1]")
    assert (found(station, name).state, found(station, name).exit_code) == ("exited", 0)


def test_progress_bars_are_lines_of_their_own(station: SimulatedStation, plan: Plan) -> None:
    name = plan.container.name
    station.create(plan, LABELS, {})
    station.start(name)
    seen = []
    for line in station.follow(name, EVERY):
        if line is not None:
            seen.append(line)
            if "Application startup complete." in line.text:
                break
    bars = [line for line in seen if line.text.startswith("Capturing CUDA graphs")]
    assert len(bars) == 12
    assert {line.stream for line in bars} == {"stderr"}
    assert not any("\r" in line.text or "\n" in line.text for line in seen)
    assert seen[-1].elapsed >= 442


def test_an_engine_that_does_not_hear_is_killed(tmp_path: Path, plan: Plan) -> None:
    # At this speed it is deaf, as Python that still imports is, for 200 s.
    for station in station_of(tmp_path / "sim", Rehearsal(0.01)):
        station.create(plan, LABELS, {})
        station.start(plan.container.name)
        station.stop(plan.container.name, 0.0)
        container = found(station, plan.container.name)
        assert (container.state, container.exit_code, container.oom_killed) == ("exited", 137, False)


def test_out_of_memory_on_the_host(tmp_path: Path, plan: Plan) -> None:
    for station in station_of(tmp_path / "sim", Rehearsal(FAST, "host-oom")):
        station.create(plan, LABELS, {})
        station.start(plan.container.name)
        last = list(texts(station.follow(plan.container.name, EVERY)))[-1]
        container = found(station, plan.container.name)
        assert (container.exit_code, container.oom_killed) == (137, True)
        assert last.startswith("Loading safetensors checkpoint shards:")


def state(station_directory: Path, identity: str) -> dict[str, object]:
    content = json.loads((station_directory / "containers" / identity / "state.json").read_text())
    assert isinstance(content, dict)
    return content


def test_a_shim_that_is_killed_takes_its_engine_along(station: SimulatedStation, plan: Plan, tmp_path: Path) -> None:
    identity = station.create(plan, LABELS, {})
    station.start(identity)
    pid = int(str(state(tmp_path / "sim", identity)["pid"]))
    shim = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) if Path("/proc").exists() else 0
    if not shim:
        pytest.skip("left out: finds the shim through /proc")
    os.kill(shim, signal.SIGKILL)
    while found(station, identity).state == "running":
        SystemClock().sleep(0.02)
    container = found(station, identity)
    assert (container.state, container.exit_code, container.error) == ("exited", 255, "its end was not recorded")
    assert container.finished_at is not None
    station.start(identity)
    assert found(station, identity).state == "running"


def test_a_reboot_leaves_it_exited_whatever_has_its_process_id_now(
    station: SimulatedStation, plan: Plan, tmp_path: Path
) -> None:
    identity = station.create(plan, LABELS, {})
    home = tmp_path / "sim" / "containers" / identity
    stale = {"start": 3, "pid": os.getpid(), "speed": FAST, "started_at": 1.0}
    (home / "state.json").write_text(json.dumps(stale))
    assert (found(station, identity).state, found(station, identity).exit_code) == ("exited", 255)
    station.stop(identity, 0.0)
    station.start(identity)
    assert found(station, identity).state == "running"


def test_half_written_containers_are_nobodys(station: SimulatedStation, plan: Plan, tmp_path: Path) -> None:
    containers = tmp_path / "sim" / "containers"
    for leftover in (".new-abc", ".gone-def", "ghi"):
        (containers / leftover).mkdir(parents=True)
    (containers / "ghi" / "container.json").write_text('{"id": "ghi", "na')
    assert station.containers() == ()
    identity = station.create(plan, LABELS, {})
    assert [container.id for container in station.containers()] == [identity]
    assert sorted(path.name for path in containers.iterdir()) == sorted([identity, "ghi"])


def test_a_short_id_is_enough(station: SimulatedStation, plan: Plan) -> None:
    identity = station.create(plan, LABELS, {})
    assert found(station, identity[:12]).id == identity
    assert station.find(identity[:11]) is None


def test_a_shim_that_cannot_start(tmp_path: Path, plan: Plan) -> None:
    station = SimulatedStation(tmp_path / "sim", SystemProcesses(), SystemClock(), "/bin/false", Rehearsal(FAST))
    identity = station.create(plan, LABELS, {})
    with pytest.raises(BackendError, match="ended without output"):
        station.start(identity)
    assert found(station, identity).state == "created"


def test_a_published_port_is_bound_and_told(station: SimulatedStation, plan: Plan) -> None:
    published = replace(plan.container, network=None, ports=(f"{plan.port}:8000",))
    identity = station.create(replace(plan, command=V14, container=published), LABELS, {})
    assert (found(station, identity).published, found(station, identity).host_network) == ((plan.port,), False)


def test_the_caches_of_measured_releases_are_there_once(station: SimulatedStation, plan: Plan, tmp_path: Path) -> None:
    station.create(plan, LABELS, {})
    cache = tmp_path / "sim" / "cache"
    files = sorted(cache.rglob("autotune_configs.json"))
    assert {"08c89d94", "9ac7b387", "cbf5ea8f"} <= {path.parent.name[:8] for path in files}
    files[1].unlink()
    station.create(replace(plan, container=replace(plan.container, name="another")), LABELS, {})
    assert not files[1].exists()


def test_mounts_that_are_not_there_are_named_once(tmp_path: Path, plan: Plan) -> None:
    for station in station_of(tmp_path / "sim", Rehearsal(has_path=lambda path: path == "/a")):
        mounts = (Mount("/b", "/1"), Mount("/a", "/2"), Mount("/b", "/3"))
        assert station.missing_sources(replace(plan, container=replace(plan.container, mounts=mounts))) == ("/b",)


def test_an_image_may_be_pinned_by_its_id(tmp_path: Path, plan: Plan) -> None:
    for station in station_of(tmp_path / "sim", Rehearsal(image_ids={"local/dsv41:1": "sha256:beef"})):
        image = station.image("local/dsv41:1")
        assert image is not None
        assert image.id == "sha256:beef"
        identity = station.create(replace(plan, image="local/dsv41:1", image_id="sha256:beef"), LABELS, {})
        assert found(station, identity).image_id == "sha256:beef"
        (other,) = station_of(tmp_path / "sim", Rehearsal())  # another command, which launches nothing
        assert other.image("local/dsv41:1") == image


def test_several_tools_at_once_make_one_container_and_one_engine(
    station: SimulatedStation, plan: Plan, tmp_path: Path
) -> None:
    name = plan.container.name

    def create() -> bool:
        try:
            station.create(plan, LABELS, {})
        except BackendError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        made = [pool.submit(create) for _ in range(4)]
        assert sorted(each.result() for each in made) == [False, False, False, True]
        for start in [pool.submit(station.start, name) for _ in range(4)]:
            start.result()
    (container,) = station.containers()
    assert (container.name, state(tmp_path / "sim", container.id)["start"]) == (name, 1)


def test_a_directory_that_cannot_be_written(tmp_path: Path, plan: Plan) -> None:
    (tmp_path / "file").write_text("")
    station = SimulatedStation(tmp_path / "file" / "sim", SystemProcesses(), SystemClock(), "python")
    assert (station.containers(), station.find("x")) == ((), None)
    with pytest.raises(BackendError, match=r"cannot write .*/file/sim: Not a directory"):
        station.create(plan, LABELS, {})
