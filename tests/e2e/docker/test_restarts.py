"""The Docker Engine restarted while a lane boots or a log is followed, on an Engine of each test's own."""

import os
import re
import secrets
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest

from gb300serve.plan.model import ContainerPlan, Plan
from tests.e2e.docker.test_lanes import DAY_ZERO, SIMULATED
from tests.support.aftermath import Aftermath, DockerPlace
from tests.support.backend_contract import EVERY, texts
from tests.support.checkpoints import write_whole
from tests.support.command import run
from tests.support.docker_engine import watched_docker
from tests.support.docker_recipe import DockerLane
from tests.support.forked import Forked
from tests.support.free_port import free_port
from tests.support.program import Program, Result, wait_for_end
from tests.support.station import STATION, Docker, Importer

pytestmark = pytest.mark.docker

IMAGE = "vllm/vllm-openai:restarted"
# Counts beside the engine's own lines, so that each that is lost or doubled is seen.
ENTRY = """\
#!/bin/sh
(i=0; while [ $i -lt 1500 ]; do i=$((i+1)); echo "count $i"; sleep 0.01; done) &
exec vllm serve "$@"
"""
COUNT = "i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo $i; sleep 0.01; done"


@dataclass
class Engine:
    """A Docker Engine whose containers outlive it, or end with it."""

    directory: Path
    survive: bool

    @property
    def options(self) -> tuple[str, ...]:
        return ("--live-restore",) if self.survive else ()

    @property
    def host(self) -> str:
        return f"unix://{self.directory}/docker.sock"

    def up(self) -> None:
        run(str(STATION), "up", str(self.directory), *self.options)

    def end(self, number: int) -> None:
        """By an upgrade's SIGTERM, or by SIGKILL."""
        pid_file = self.directory / "docker.pid"
        process = int(pid_file.read_text())
        os.kill(process, number)
        for _ in range(300):
            if not Path(f"/proc/{process}").exists():
                break
            time.sleep(0.1)
        pid_file.unlink(missing_ok=True)


@pytest.fixture
def engine(
    request: pytest.FixtureRequest, sim_image: Importer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    """`sim_image` is asked for only because it says whether there may be one."""
    found = Engine(tmp_path_factory.mktemp("engine"), request.param)
    found.up()
    run(str(STATION), "image", "sim", IMAGE, str(found.directory))
    yield found
    found.up()
    run(str(STATION), "down", str(found.directory))


@pytest.fixture
def lane(tmp_path: Path, engine: Engine) -> DockerLane:
    entry = tmp_path / "switch" / "entry"
    entry.parent.mkdir()
    entry.write_text(ENTRY)
    entry.chmod(0o755)
    mounts = [
        {"source": "${cache}", "target": "/root/.cache/vllm"},
        {"source": str(entry.parent), "target": "/switch"},
    ]
    found = DockerLane(
        tmp_path, engine.host, IMAGE, f"gb300test-{secrets.token_hex(4)}",
        SIMULATED | {"port": free_port()}, DAY_ZERO, write_whole(tmp_path / "models" / "workbench"),
        {"GB300SERVE_SIM_SPEED": "800"}, {"entrypoint": "/switch/entry", "mounts": mounts},
    )  # fmt: skip
    found.site()
    found.write("v1")
    found.write("v2", max_num_seqs=4)
    return found


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Forked(tmp_path, {"GB300SERVE_SITE": str(tmp_path / "site.yaml")})


def restarted_under(program: Program, engine: Engine, words: tuple[str, ...], sign: str, number: int) -> Result:
    """`up`, and the Engine restarted as soon as it has said `sign`; how it ended, by itself or once it serves."""
    process = program.start("up", *words)
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if sign in line:
            break
    engine.end(number)
    time.sleep(0.5)
    engine.up()
    for line in process.stderr:
        said.append(line)
        if line.startswith("serving at "):
            process.send_signal(signal.SIGINT)
            break
    out, err = wait_for_end(process, 120)
    return Result(process.returncode, out, "".join(said) + err)


def counted(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"count (\d+)$", text, re.MULTILINE)]


# Signs of the moments: before the first line, in two phases, at the end of the boot.
MOMENTS = [
    pytest.param(True, sign, number, id=f"lives-{sign.split()[0]}-{number}")
    for sign, number in (
        ("start ", signal.SIGTERM),
        ("loading-weights", signal.SIGTERM),
        ("loading-weights", signal.SIGKILL),
        ("profiling", signal.SIGTERM),
    )
] + [
    pytest.param(False, sign, number, id=f"ends-{sign.split()[0]}-{number}")
    for sign, number in (("loading-weights", signal.SIGTERM), ("profiling", signal.SIGKILL))
]


@pytest.mark.parametrize(("engine", "sign", "number"), MOMENTS, indirect=["engine"])
def test_in_the_middle_of_a_boot(program: Program, lane: DockerLane, engine: Engine, sign: str, number: int) -> None:
    state = program.home / ".local" / "state" / "gb300serve"
    after = Aftermath(program, DockerPlace(Docker(engine.host), lane.name), state, ())
    ended = restarted_under(program, engine, ("v1",), sign, number)
    assert "Traceback" not in ended.err
    assert "a bug of ours" not in ended.err
    assert ended.code in ({130, 7} if engine.survive else {7, 8}), ended.err
    assert "gb300serve: " in ended.err or ended.code == 130
    after.judge()
    after.judge_status()
    told = [number for log in (state / "runs").glob("*/log.txt") for number in counted(log.read_text())]
    assert told == sorted(set(told)), "no line is told twice"
    # An Engine that is killed takes along the line that it has read and not yet written.
    assert len(told) >= max(told, default=0) - (number == signal.SIGKILL), "no line is lost"

    up = program.up_until_ready("v1")
    after.judge_up(up, "v1", f"http://127.0.0.1:{lane.options['port']}")
    after.judge_down(program.run("down"))


@pytest.mark.parametrize("engine", [True], indirect=True)
def test_a_followed_log_loses_no_line_and_repeats_none(engine: Engine) -> None:
    container = ContainerPlan("lane", network="host", entrypoint="/bin/sh")
    plan = Plan("l/r", "l", "r", "vllm", None, IMAGE, None, container, ("-c", COUNT), ("m",), None, None)
    backend = watched_docker(engine.host)
    backend.create(plan, {}, {})
    backend.start("lane")
    followed = texts(backend.follow("lane", EVERY))
    seen = list(islice(followed, 20))
    engine.end(signal.SIGTERM)
    engine.up()
    seen += followed
    assert seen == [str(number) for number in range(1, 401)]
