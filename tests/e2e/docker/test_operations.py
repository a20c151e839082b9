"""Operations on a real Docker Engine: restart policies, crash loops, interruptions, failed replacements, rollback."""

import json
import os
import re
import signal
import time
from dataclasses import replace

import pytest

from tests.support.aftermath import Aftermath, DockerPlace, answers_at_last
from tests.support.docker_recipe import DockerLane
from tests.support.program import Program, Result, wait_for_end
from tests.support.station import Docker
from tests.support.switched import KV_LOG, entries, happened, names, now, policy, said, state, switch

pytestmark = pytest.mark.docker


@pytest.fixture
def program(switched_program: Program) -> Program:
    return switched_program


@pytest.fixture
def lane(switched_lane: DockerLane) -> DockerLane:
    return switched_lane


def up(program: Program, release: str, *words: str) -> Result:
    ended = program.up_until_ready(release, *words)
    assert ended.code in {0, 130}, ended.err
    return ended


def test_a_boot_that_fails_under_a_restart_policy(program: Program, lane: DockerLane, docker: Docker) -> None:
    (switch(lane) / "fail").touch()
    since = now(docker)
    failed = program.run("up", "v1")
    assert failed.code == 8, failed.err
    message = failed.err[failed.err.index("gb300serve: ") :].splitlines()
    (cause,) = [line for line in KV_LOG.read_text().splitlines() if "[core.py:1510] ValueError: To serve" in line]
    assert message[0] == f"gb300serve: {cause}"
    for fact in ("4.0 GiB KV cache is needed", "(1.0 GiB)", "maximum model length is 2097024"):
        assert fact in cause
    assert message[1].startswith("kv-cache-too-small in phase sizing-kv-cache, ")
    assert "max_model_len 2097024 would fit" in failed.err, "what to change"
    (kept,) = names(docker, lane)
    assert kept.startswith(f"{lane.name}-failed-")
    assert policy(docker, kept) == "no 0"
    identity = docker("inspect", "--format", "{{.Id}}", kept)
    told = [each.split()[0] for each in happened(docker, since, f"container={identity}")]
    assert ("create" in told, "update" in told) == (True, False), "it never had another policy"
    assert said(docker, kept).count("ValueError: To serve") == KV_LOG.read_text().count("ValueError: To serve")
    (path,) = (state(program) / "runs").iterdir()
    verdict = json.loads((path / "run.json").read_text())["verdict"]
    assert verdict["reason"] == "kv-cache-too-small"
    assert verdict["diagnosis"]["values"] == {
        "max_model_len": 8388608, "needed_gib": 4.0, "available_gib": 1.0, "estimated_max_model_len": 2097024,
    }  # fmt: skip
    written = [line.partition(" ")[2] for line in (path / "log.txt").read_text().splitlines()]
    assert set(KV_LOG.read_text().splitlines()) <= set(written), "the whole log"
    (switch(lane) / "fail").unlink()
    up(program, "v1")
    assert policy(docker, lane.name) == "unless-stopped 0"


def test_a_crash_loop_after_ready_is_stopped(program: Program, lane: DockerLane, docker: Docker) -> None:
    serving = program.start("up", "v1")
    assert serving.stderr is not None
    for line in serving.stderr:
        if line.startswith("serving at "):
            break
    (switch(lane) / "fail").touch()
    os.kill(int(docker("inspect", "--format", "{{.State.Pid}}", lane.name)), signal.SIGKILL)
    _, err = wait_for_end(serving, 120)
    assert serving.returncode == 8, err
    assert "times in a row under its restart policy; its restart policy was removed and it was stopped" in err
    assert docker("inspect", "--format", "{{.State.Status}}", lane.name) == "exited"
    assert policy(docker, lane.name).startswith("no ")
    assert entries(program)[-1] == ("up", "crash-loop")


def test_an_engine_that_its_policy_brings_back_serves_again(program: Program, lane: DockerLane, docker: Docker) -> None:
    serving = program.start("up", "v1")
    assert serving.stderr is not None
    said = []
    for line in serving.stderr:
        said.append(line)
        if line.startswith("serving at "):
            os.kill(int(docker("inspect", "--format", "{{.State.Pid}}", lane.name)), signal.SIGKILL)
        if sum("READY: bench answers" in each for each in said) == 2:
            serving.send_signal(signal.SIGINT)
            break
    _, rest = wait_for_end(serving, 30)
    assert serving.returncode == 130, "".join(said) + rest
    assert any("; its restart policy starts it again" in line for line in said)
    assert policy(docker, lane.name) == "unless-stopped 1"


def interrupted(program: Program, after: str, *, twice: bool) -> str:
    """What `up` says when the process group is interrupted, as by Ctrl-C, once it has said `after`."""
    booting = program.start("up", "v1", group=True)
    assert booting.stderr is not None
    told = []
    for line in booting.stderr:
        told.append(line)
        if after in line:
            break
    os.killpg(booting.pid, signal.SIGINT)
    if twice:
        time.sleep(0.1)
        if booting.poll() is None:
            os.killpg(booting.pid, signal.SIGINT)
    _, err = wait_for_end(booting, 15)
    assert booting.returncode == 130, err
    return "".join(told) + err


def test_ctrl_c_in_the_middle_of_a_boot(program: Program, lane: DockerLane, docker: Docker) -> None:
    """Once in the first launch, twice in the one that takes up its watch; there is one container all along."""
    lane.env["GB300SERVE_SIM_SPEED"] = "200"  # nothing is in the cache: tuning takes 22 s
    lane.write("v1")
    after = Aftermath(program, DockerPlace(docker, lane.name), state(program), ())
    ids = set()
    for sign, twice in (("loading-weights", False), ("tuning-kernels", True)):
        err = interrupted(program, sign, twice=twice)
        assert err.splitlines()[-1] == (
            f"gb300serve: interrupted; {lane.name} keeps running; watch it again: gb300serve up v1; "
            "stop it: gb300serve down v1"
        )
        assert "Traceback" not in err
        after.judge()
        after.judge_settled()
        run = after.runs()[-1]
        assert (run["state"], run["exit"], run["log"]["complete"]) == ("interrupted", {"tool": 130}, True)
        log = (state(program) / "runs" / run["run"] / "log.txt").read_text()
        assert "Starting to load model" in log
        assert log.endswith("\n")
        (found,) = program.run("status", "--on", "docker", "--json").document["lanes"]
        assert (found["state"] in {"booting", "tuning"}, found["phase"] is None, found["drift"]) == (True, False, [])
        ids.add(docker("ps", "--all", "--quiet", "--no-trunc", "--filter", f"name={lane.name}"))
    assert up(program, "v1").code == 130
    ids.add(docker("ps", "--all", "--quiet", "--no-trunc", "--filter", f"name={lane.name}"))
    assert (len(ids), names(docker, lane)) == (1, [lane.name])
    assert entries(program) == [("up", "interrupted"), ("up", "interrupted"), ("up", "ready")]


def test_a_lane_that_somebody_removes_was_removed(program: Program, lane: DockerLane, docker: Docker) -> None:
    """While it serves: the end of its log, its end and its removal are seen in any order."""
    serving = program.start("up", "v1")
    assert serving.stderr is not None
    for line in serving.stderr:
        if line.startswith("serving at "):
            break
    docker("rm", "--force", lane.name)
    _, err = wait_for_end(serving, 60)
    assert (serving.returncode, err.splitlines()[-1]) == (0, f"{lane.name} was removed"), err


def test_a_detached_boot_that_fails_was_only_started(program: Program, lane: DockerLane, docker: Docker) -> None:
    for each in ("hold", "fail"):
        (switch(lane) / each).touch()
    assert program.run("up", "v1", "--detach").code == 0
    (switch(lane) / "hold").unlink()
    docker("wait", lane.name)
    status = program.run("status")
    assert status.code == 0, status.err
    assert f"{lane.name}: the journal records that it was started at " in status.out
    assert " and not watched until READY; gb300serve did not stop it" in status.out
    (told,) = program.run("status", "--json").document["lanes"]
    assert (told["state"], told["health"]["reason"]) == ("failed", "kv-cache-too-small")


@pytest.mark.parametrize(
    ("broken", "code", "kept"),
    [
        ({}, 8, True),  # it dies as soon as it starts
        ({"memory": "1m"}, 7, False),  # Docker makes no container with less than 6 MiB
        ({"entrypoint": "/nothing/here"}, 7, False),  # nor does it start one without its program
    ],
    ids=["boot", "create", "start"],
)
def test_a_replacement_that_fails(
    program: Program, lane: DockerLane, docker: Docker, broken: dict[str, object], code: int, kept: bool
) -> None:
    up(program, "v1")
    place = DockerPlace(docker, lane.name)
    after = Aftermath(program, place, state(program), place.containers())
    replace(lane, container=lane.container | broken).write("v2", max_num_seqs=4)
    if not broken:
        (switch(lane) / "fail-once").touch()
    failed = program.run("up", "v2", "--replace", "--reason", "rehearsed")
    assert failed.code == code, failed.err
    assert "Traceback" not in failed.err
    url = f"http://127.0.0.1:{lane.options['port']}"
    assert answers_at_last(url)
    after.judge_up(program.run("up", "v1"), "v1", url)
    assert policy(docker, lane.name).startswith("unless-stopped")
    assert entries(program) == [("up", "ready"), ("up", "failed")]
    found = [each for each in place.containers() if each.release == "v2"]
    assert [each.name.startswith(f"{lane.name}-failed-") for each in found] == [True] * kept
    run = after.runs()[-1]
    assert (run["release"], run["state"], run["exit"]["tool"]) == ("v2", "failed", code)
    assert run["verdict"]["message"]


def change(entry: dict[str, object]) -> tuple[object, ...]:
    """Verb, result, reason, and releases before and after, of an entry of the journal."""
    ends = [[each["release"].rpartition("/")[2] for each in entry[side]] for side in ("from", "to")]  # type: ignore[attr-defined]  # lists of objects
    return (entry["verb"], entry["result"], entry["reason"], *ends)


def test_rollback(program: Program, lane: DockerLane, docker: Docker) -> None:
    for release, words in (("v1", ()), ("v2", ("--replace",))):
        assert program.up_until_ready(release, *words).code == 130
        (switch(lane) / release).write_text(docker("inspect", "--format", "{{.Id}}", lane.name))
    first, second = ((switch(lane) / release).read_text() for release in ("v1", "v2"))
    (kept,) = [each for each in names(docker, lane) if each != lane.name]
    since = now(docker)
    back = program.run("rollback", "--reason", "slower")
    assert back.code == 0, back.err

    told = back.err[: back.err.index("wait for READY")].splitlines()
    shown = [
        r"back to workbench/v1, READY on 20\d\d-\d\d-\d\d \(run \S+-workbench-v1\)",
        rf"its container is kept as {kept} and is restarted",
        r"expected time: unknown; on the Station 4 to 5 minutes for a kept container, 8 for a fresh one",
        r"kernels: that run tuned and saved them; they are loaded unless the cache has changed since",
        rf"1\. set the restart policy of {lane.name} to no",
        rf"2\. stop {lane.name} \(SIGKILL after 30 s\); the container is kept",
        rf"3\. rename {lane.name} to {lane.name}-kept-v2-\S+",
        rf"4\. rename {kept} to {lane.name}",
        rf"5\. start {lane.name} \(the kept container\)",
    ]
    begins = next(number for number, line in enumerate(told) if line.startswith("back to "))
    for pattern, line in zip(shown, told[begins : begins + len(shown)], strict=True):
        assert re.fullmatch(pattern, line), (pattern, line)
    assert docker("inspect", "--format", "{{.Id}} {{.State.Running}}", lane.name) == f"{first} true"
    assert docker("inspect", "--format", "{{.State.Status}}", second) == "exited"
    assert (policy(docker, first), policy(docker, second)) == ("unless-stopped 0", "no 0")
    run = sorted((state(program) / "runs").iterdir())[-1]
    checked = json.loads((run / "receipts.json").read_text())
    assert (checked["release"], checked["verdict"]) == ("workbench/v1", "kept")
    done = [each.split()[0] for each in happened(docker, since, f"container={first}", f"container={second}")]
    order = [each for each in done if each in {"stop", "start", "destroy", "create"}]
    assert order == ["stop", "start"], "both are there at every moment, and one of them leaves before the other comes"

    before = {each: policy(docker, each) for each in names(docker, lane)}
    (switch(lane) / "fail-once").touch()
    since = now(docker)
    failed = program.run("rollback")
    assert failed.code == 8, failed.err
    assert "kv-cache-too-small in phase sizing-kv-cache" in failed.err
    assert f"{lane.name} was put back and boots again" in failed.err
    assert {each: policy(docker, each) for each in names(docker, lane)} == before, "names and policies as they were"
    assert docker("inspect", "--format", "{{.Id}} {{.State.Running}}", lane.name) == f"{first} true"
    assert not [each for each in happened(docker, since, "type=container") if each.startswith("destroy gb300test")]

    told = program.run("journal", "--json").document["entries"]
    assert [change(each) for each in told] == [
        ("up", "ready", None, [], ["v1"]),
        ("up", "ready", None, ["v1"], ["v2"]),
        ("rollback", "ready", "slower", ["v2"], ["v1"]),
        ("rollback", "failed", None, ["v1"], ["v1"]),
    ]
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", each["at"]) for each in told)
    forth = program.run("rollback")
    assert forth.code == 0, forth.err
    assert docker("inspect", "--format", "{{.Id}} {{.State.Running}}", lane.name) == f"{second} true"
