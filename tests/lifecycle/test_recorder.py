"""A launch written down: whole, without secrets, and without ever standing in the launch's way."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gb300serve.adapters.system import SystemDisk
from gb300serve.core.errors import BackendError
from gb300serve.core.ports import Response
from gb300serve.core.values import Missing
from gb300serve.journal.journal import RunningLane
from gb300serve.journal.runs import Runs, parse_record
from gb300serve.lifecycle.backend import Container
from gb300serve.lifecycle.events import SharedMemoryRead
from gb300serve.lifecycle.execute import LaunchResult, execute
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.reconcile import plan_launch
from gb300serve.lifecycle.recorder import Recorder, lane_names, running_lane, running_lanes
from gb300serve.lifecycle.tools import Tools
from tests.support.entries import record
from tests.support.fake_backend import FakeBackend, Script
from tests.support.fake_http import BackendHttp, FixedHttp
from tests.support.faulty_disk import FaultyDisk
from tests.support.launches import BOOT, SERVES, STRANGER, backend, container, launch

SECRET = "sesame-open-123"
V14 = replace(launch("v14"), secrets={"KEY": SECRET, "PIN": "1"})
LEAKY = replace(SERVES, lines=((1.0, f"api_key: {SECRET} \ud800"), *BOOT))
# More changes of the disk than the launch below makes.
MOST_CHANGES = 60


def begun(directory: Path, station: FakeBackend, disk: FaultyDisk | SystemDisk, said: list[str]) -> Recorder:
    run = Runs(directory, disk).begin(record(plan=V14.digest, ready_seconds=None, state="launching"), {})
    return Recorder(run, V14, station, station.clock, said.append)


def up(recorder: Recorder, station: FakeBackend, of: Launch = V14) -> LaunchResult:
    tools = Tools(station, BackendHttp(station), station.clock, recorder.hear)
    return execute(plan_launch(of, tools), of, tools)


def test_a_launch_as_it_is_written_down(tmp_path: Path) -> None:
    station, said = backend(LEAKY), list[str]()
    recorder = begun(tmp_path, station, SystemDisk(), said)
    up(recorder, station)
    recorder.close(exit={"tool": 0})
    path = recorder.run.path
    log = (path / "log.txt").read_text().splitlines()
    assert log[:2] == ["2026-11-29T19:50:04.000Z api_key: [secret] \\ud800", f"2026-11-29T19:50:05.000Z {BOOT[0][1]}"]
    assert len(log) == len(BOOT) + 1
    kept = json.loads((path / "run.json").read_text())
    assert (kept["state"], kept["ready_seconds"], kept["exit"]) == ("ready", pytest.approx(454.5, abs=2.0), {"tool": 0})
    assert (kept["container"]["name"], kept["container"]["id"]) == ("dsv41-vllm", "id1")
    assert [each["name"] for each in kept["phases"]][:2] == ["starting", "loading-weights"]
    assert sum(each["seconds"] for each in kept["phases"]) == pytest.approx(kept["ready_seconds"], abs=2.0)
    assert (kept["log"], said) == ({"lines": len(BOOT) + 1, "complete": True}, [])
    assert kept["verdict"] == {"message": "it serves", "hint": None, "reason": None, "receipts": "degraded"}
    checked = json.loads((path / "receipts.json").read_text())
    assert (checked["schema"], checked["container"], checked["verdict"]) == (
        "gb300serve.receipts/1", "dsv41-vllm", "degraded",
    )  # fmt: skip
    assert checked["receipts"] == [each for each in kept["receipts"] if "state" in each] != []
    events = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    assert {"StepBegan", "PhaseEntered", "BecameReady"} <= {each["kind"] for each in events}
    assert events[0]["step"].startswith("create dsv41-vllm for deepseek-v4.1-flash/v14")
    assert SECRET not in "".join(each.read_text() for each in path.iterdir())
    assert not (path / ".room").exists()


def test_the_record_of_a_killed_command_tells_how_far_it_came(tmp_path: Path) -> None:
    station = backend(SERVES)
    recorder = begun(tmp_path, station, SystemDisk(), [])
    up(recorder, station)
    (kept,) = Runs(tmp_path, SystemDisk()).all()
    assert (kept.state, kept.good, kept.container_id, kept.ended) == ("ready", True, "id1", None)


@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("change", range(6, MOST_CHANGES, 3))
def test_a_disk_that_fills_up_is_said_once_and_the_launch_goes_on(tmp_path: Path, change: int, share: float) -> None:
    station, said = backend(SERVES), list[str]()
    disk = FaultyDisk(share=share)
    recorder = begun(tmp_path, station, disk, said)
    disk.fault_at = change
    served = up(recorder, station).served
    assert served is not None
    recorder.close(exit={"tool": 0})
    assert station.calls == ["create dsv41-vllm", "start dsv41-vllm"]
    if not disk.is_full:
        assert said == []
        return
    assert "can no longer be written (No space left on device): the launch continues" in said[0]
    assert said[1:] == [said[-1]]
    assert "the log of this run is incomplete from 2026-11-29T" in said[-1]
    path = recorder.run.path
    assert json.loads((path / "run.json").read_text())["schema"] == "gb300serve.run/1"
    for name in ("log.txt", "events.jsonl"):
        lines = (path / name).read_text().splitlines(keepends=True) if (path / name).exists() else []
        assert all(line.endswith("\n") for line in lines)


def test_the_room_that_was_kept_holds_the_last_words(tmp_path: Path) -> None:
    """The log filled the disk: what was kept free is enough for the record."""
    station, said = backend(SERVES), list[str]()
    disk = FaultyDisk()
    recorder = begun(tmp_path, station, disk, said)
    disk.fault_at, disk.stays_full = 12, False
    up(recorder, station)
    recorder.close(exit={"tool": 0})
    kept = json.loads((recorder.run.path / "run.json").read_text())
    assert (kept["state"], kept["log"]["complete"], kept["exit"]) == ("ready", False, {"tool": 0})
    assert kept["log"]["until"].startswith("2026-11-29T")
    assert len(said) == 2


def test_metrics_are_kept_where_the_engine_answers(tmp_path: Path) -> None:
    station = backend(SERVES)
    recorder = begun(tmp_path, station, SystemDisk(), [])
    recorder.keep_metrics(FixedHttp({}))
    recorder.keep_metrics(FixedHttp({"/metrics": Response(503, "")}))
    assert not (recorder.run.path / "metrics.txt").exists()
    recorder.keep_metrics(FixedHttp({"/metrics": Response(200, "up 1\n")}))
    assert (recorder.run.path / "metrics.txt").read_text() == "up 1\n"


def test_what_the_log_says_of_tuning_is_kept(tmp_path: Path) -> None:
    loaded = "(EngineCore pid=1) 2026-11-29 19:56:48,1 - INFO - autotuner.py:9 - flashinfer.jit: [Autotuner]: "
    script = Script((*BOOT[:-1], (400.0, f"{loaded}Loaded 210 configs from /c"), BOOT[-1]), ready_at=454.5)
    station = backend(script)
    recorder = begun(tmp_path, station, SystemDisk(), [])
    up(recorder, station)
    recorder.close()
    told = [each for each in recorder.run.record.receipts if each["name"] == "tuning"]
    assert [each["values"] for each in told] == [{"loaded": 210, "missed": False}]


def test_what_has_no_json_is_cleaned(tmp_path: Path) -> None:
    recorder = begun(tmp_path, backend(SERVES), SystemDisk(), [])
    assert recorder.clean({"a": (f"x {SECRET}", 1, None)}) == {"a": ["x [secret]", 1, None]}


V14_CHANGES = launch()


def test_what_serves_is_ours_and_runs() -> None:
    station = backend()
    station.add(container(V14_CHANGES))
    station.add(container(launch("v13"), state="exited", finished_at=1.0))
    station.add(STRANGER)
    found = running_lanes(station)
    assert found == (RunningLane("deepseek-v4.1-flash/v14", "dsv41-vllm", "id-v14", V14_CHANGES.digest),)
    assert found == (running_lane(container(V14_CHANGES)),)
    assert lane_names(found) == "deepseek-v4.1-flash/v14 (dsv41-vllm)"
    assert lane_names(()) == "nothing"


def test_an_engine_that_does_not_answer_says_nothing() -> None:
    class Silent(FakeBackend):
        def containers(self) -> tuple[Container, ...]:
            raise BackendError("no Docker Engine answers")

    assert running_lanes(Silent()) == ()


@pytest.mark.parametrize(
    ("held", "kept"),
    [
        (3 * 2**29, {"held_gib": 1.5, "expected_gib": 2.25, "missing": None}),
        (Missing(f"not {SECRET}"), {"held_gib": None, "expected_gib": 2.25, "missing": "not [secret]"}),
    ],
)
def test_pinned_host_memory_is_kept(tmp_path: Path, held: int | Missing, kept: dict[str, object]) -> None:
    recorder = begun(tmp_path, backend(SERVES), SystemDisk(), [])
    recorder.hear(SharedMemoryRead(held, 2.25))
    recorder.close(exit={"tool": 0})
    written = json.loads((recorder.run.path / "run.json").read_text())
    (event,) = map(json.loads, (recorder.run.path / "events.jsonl").read_text().splitlines())
    assert (written["shared_memory"], event["kind"]) == (kept, "SharedMemoryRead")
    assert {key: event[key] for key in kept} == kept
    again = parse_record(written)
    assert again is not None
    assert again.shared_memory == kept
