"""Back to the release before, on a real Docker Engine."""

import json
import re

import pytest

from tests.support.docker_recipe import DockerLane
from tests.support.program import Program
from tests.support.station import Docker
from tests.support.switched import happened, names, now, policy, state, switch

pytestmark = pytest.mark.docker


def change(entry: dict[str, object]) -> tuple[object, ...]:
    """Verb, result, reason, and releases before and after, of an entry of the journal."""
    ends = [[each["release"].rpartition("/")[2] for each in entry[side]] for side in ("from", "to")]  # type: ignore[attr-defined]  # lists of objects
    return (entry["verb"], entry["result"], entry["reason"], *ends)


def test_rollback(switched_program: Program, switched_lane: DockerLane, docker: Docker) -> None:
    program, lane = switched_program, switched_lane
    for release, words in (("v1", ()), ("v2", ("--replace",))):
        assert program.up_until_ready(release, *words).code == 130
        (switch(lane) / release).write_text(docker("inspect", "--format", "{{.Id}}", lane.name))
    first, second = ((switch(lane) / release).read_text() for release in ("v1", "v2"))
    (kept,) = [each for each in names(docker, lane) if each != lane.name]
    since = now(docker)
    back = program.run("rollback", "--reason", "slower")
    assert back.code == 0, back.err

    told = back.err[: back.err.index("wait until")].splitlines()
    shown = [
        r"back to workbench/v1, READY on 20\d\d-\d\d-\d\d \(run \S+-workbench-v1\)",
        rf"its container is kept as {kept}, and is started again",
        r"expected time: not known; on the Station 4 to 5 minutes for a kept container, 8 for a fresh one",
        r"kernels: they were tuned in that run and saved; they are loaded unless the cache was changed since",
        rf"1\. set the restart policy of {lane.name} to no",
        rf"2\. stop {lane.name}, killing it after 30 s; it stays as it is",
        rf"3\. rename {lane.name} to {lane.name}-kept-v2-\S+",
        rf"4\. rename {kept} to {lane.name}",
        rf"5\. start {lane.name} \(the kept container\)",
    ]
    begins = next(number for number, line in enumerate(told) if line.startswith("back to "))
    for pattern, line in zip(shown, told[begins:], strict=False):
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

    entries = program.run("journal", "--json").document["entries"]
    assert [change(each) for each in entries] == [
        ("up", "ready", None, [], ["v1"]),
        ("up", "ready", None, ["v1"], ["v2"]),
        ("rollback", "ready", "slower", ["v2"], ["v1"]),
        ("rollback", "failed", None, ["v1"], ["v1"]),
    ]
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", each["at"]) for each in entries)
    forth = program.run("rollback")
    assert forth.code == 0, forth.err
    assert docker("inspect", "--format", "{{.Id}} {{.State.Running}}", lane.name) == f"{second} true"
