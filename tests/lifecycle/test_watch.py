from dataclasses import dataclass, field, replace
from typing import Self

import pytest

from gb300serve.autotune.sets import ExpectedSet
from gb300serve.boot.events import Progress, Receipt, TuningMiss
from gb300serve.boot.phases import Phase
from gb300serve.core.errors import Action, BackendError
from gb300serve.engines.logs import boot_machine
from gb300serve.lifecycle.backend import Bars, Vitals
from gb300serve.lifecycle.events import Announcement, HealthChanged, StackTaken, TuningForeseen, Watching
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.tools import Tools
from gb300serve.lifecycle.watch import BootWatch
from tests.support.fake_backend import FakeBackend
from tests.support.fake_http import BackendHttp
from tests.support.launches import backend, launch

TUNED = ExpectedSet("9ac7b387", 210, "measured", (4440.0, 4440.0))
V14 = replace(launch(), expected={"loading-weights": 153.0, "tuning-kernels": 7.0, "serving": 16.0}, tuning=TUNED)
LOADING = "(EngineCore pid=1) INFO 11-29 19:50:26 [gpu_model_runner.py:4979] Starting to load model /model..."
LOOKS_FOR = (
    "(EngineCore pid=1) INFO 11-29 19:58:00 [kernel_warmup.py:333] Using FlashInfer autotune cache file: "
    "/root/.cache/vllm/flashinfer_autotune_cache/0.6.18/103a/{}/autotune_configs.json"
)
STARTS = (
    "(EngineCore pid=1) 2026-11-29 19:58:01,000 - INFO - autotuner.py:972 - flashinfer.jit: "
    "[Autotuner]: Autotuning process starts ..."
)
LOADED = STARTS.replace("Autotuning process starts ...", "Loaded 210 configs from /root/x.json")
BAR = "[AutoTuner]: Tuning flashinfer::moe:  10%|█ | 10/103 [07:09<66:30, 42.91s/profile]"


@dataclass
class Drawn:
    """Bars that were drawn since anybody asked."""

    texts: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        del error

    def fresh(self) -> tuple[str, ...]:
        found, self.texts = tuple(self.texts), []
        return found


@dataclass
class Watchful(FakeBackend):
    """One that tells all that a watch may ask for."""

    cpu: float | None = 0.0
    gone: bool = False
    dumps: bool = True
    dump: str | None = "Thread 364 (idle)"
    drawn: Drawn = field(default_factory=Drawn)

    def vitals(self, container: str) -> Vitals:
        if self.gone:
            raise BackendError("the Engine has gone")
        return Vitals(self.cpu)

    def stack_command(self, container: str) -> str:
        return f"docker exec {container} py-spy dump --pid 1"

    def stacks(self, container: str) -> str | None:
        if not self.dumps:
            raise BackendError("the Engine has gone")
        return self.dump

    def bars(self, container: str) -> Bars:
        return self.drawn


@dataclass
class Watched:
    """A boot that is fed by hand."""

    of: Launch = V14
    backend: FakeBackend = field(default_factory=Watchful)
    told: list[Announcement] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.machine = boot_machine()
        tools = Tools(self.backend, BackendHttp(self.backend), self.backend.clock, self.told.append)
        self.attention = BootWatch("c1", self.of, tools)

    def say(self, line: str, at: float) -> None:
        for event in self.machine.feed(line, at):
            self.attention.take(event)

    def wait(self, at: float) -> None:
        self.backend.clock.sleep(2.0)
        for event in (*self.attention.glimpse(self.machine, at), *self.machine.tick(at)):
            self.attention.take(event)
        self.attention.tick(self.machine, at)

    def heard(self, kind: type) -> list[object]:
        return [each for each in self.told if isinstance(each, kind)]


def test_every_tick_says_what_is_awaited() -> None:
    watched = Watched()
    watched.say(LOADING, 23.0)
    watched.wait(53.0)
    (watching,) = watched.heard(Watching)
    assert isinstance(watching, Watching)
    assert watching.outlook.sentence() == (
        "loading-weights for 30 s of about 153, ready in about 2:26; waiting for weights from the disk"
    )
    assert watching.judgement.health == "working"


def test_stuck_is_told_once_with_a_way_to_look_at_it() -> None:
    watched = Watched()
    watched.say(LOADING, 23.0)
    for at in (30.0, 100.0, 170.0, 240.0):
        watched.wait(at)
    (changed,) = watched.heard(HealthChanged)
    assert isinstance(changed, HealthChanged)
    assert (changed.judgement.health, changed.at) == ("stuck", 170.0)
    assert changed.stack_command == "docker exec c1 py-spy dump --pid 1"
    assert watched.heard(StackTaken) == []


@pytest.mark.parametrize(
    ("dumps", "dump", "text"),
    [
        (True, "Thread 364 (idle)", "Thread 364 (idle)"),
        (True, None, "py-spy is not available in the container"),
        (False, None, "the Engine has gone"),
    ],
)
def test_a_stack_is_taken_where_it_was_asked_for(*, dumps: bool, dump: str | None, text: str) -> None:
    station = Watchful(dump=dump)
    watched = Watched(replace(V14, stack_dump=True), station)
    watched.say(LOADING, 23.0)
    for at in (30.0, 100.0):
        watched.wait(at)
    station.dumps = dumps
    watched.wait(170.0)
    assert watched.heard(StackTaken) == [StackTaken(text, 170.0)]


def test_a_busy_engine_is_left_alone() -> None:
    station = Watchful()
    watched = Watched(backend=station)
    watched.say(LOADING, 23.0)
    for at in (30.0, 100.0, 170.0):
        station.cpu = at * 3
        watched.wait(at)
    assert watched.heard(HealthChanged) == []
    assert watched.attention.sees
    assert watched.attention.judgement.active


def test_an_engine_of_containers_that_does_not_answer_is_no_sign_of_death() -> None:
    watched = Watched(backend=Watchful(gone=True))
    watched.say(LOADING, 23.0)
    for at in (30.0, 100.0, 170.0):
        watched.wait(at)
    assert watched.heard(HealthChanged) == []
    assert not watched.attention.sees


def test_a_backend_that_tells_nothing_is_watched_by_its_log() -> None:
    watched = Watched(backend=backend())
    with watched.attention:
        watched.say(LOADING, 23.0)
        for at in (30.0, 100.0, 300.0):
            watched.wait(at)
    assert [each.judgement.health for each in watched.heard(Watching) if isinstance(each, Watching)] == ["working"] * 3


def test_bars_are_seen_before_the_log_has_them() -> None:
    station = Watchful()
    watched = Watched(backend=station)
    with watched.attention:
        watched.say(STARTS, 408.0)
        station.drawn.texts.append(BAR)
        events = watched.attention.glimpse(watched.machine, 837.0)
        assert [type(event) for event in events] == [TuningMiss, Progress]
        for event in events:
            watched.attention.take(event)
        ahead = watched.attention.outlook(837.0)
        assert (ahead.phase, ahead.expected) == (Phase.TUNING_KERNELS, 4440.0)
        assert ahead.bar is not None
        assert (ahead.bar.done, ahead.bar.total) == (10, 103)
        assert watched.attention.glimpse(watched.machine, 838.0) == ()


def test_another_identity_is_a_miss_the_moment_it_is_named() -> None:
    watched = Watched()
    watched.say(LOOKS_FOR.format("cbf5ea8f" + "0" * 56), 405.0)
    (foreseen,) = watched.heard(TuningForeseen)
    assert isinstance(foreseen, TuningForeseen)
    assert foreseen.why == "the engine looks for tuning set cbf5ea8f, the recipe expects 9ac7b387"
    assert (foreseen.price, foreseen.at) == ("about 74 minutes", 405.0)
    assert foreseen.suggest[1:] == (
        Action("down", "or stop it"),
        Action("cache seed", "then put a known set in place and launch again"),
    )
    watched.say(STARTS, 408.0)
    watched.wait(409.0)
    assert len(watched.heard(TuningForeseen)) == 1


def test_the_expected_set_that_is_loaded_is_no_miss() -> None:
    watched = Watched()
    for line in (LOOKS_FOR.format("9ac7b387" + "0" * 56), LOADED, STARTS):
        watched.say(line, 405.0)
    watched.wait(406.0)
    assert watched.heard(TuningForeseen) == []


def test_nothing_loaded_is_a_miss() -> None:
    watched = Watched(replace(V14, tuning=ExpectedSet()))
    watched.say(LOOKS_FOR.format("9ac7b387" + "0" * 56), 405.0)
    watched.say(STARTS, 408.0)
    watched.wait(409.0)
    (foreseen,) = watched.heard(TuningForeseen)
    assert isinstance(foreseen, TuningForeseen)
    assert foreseen.why == "kernels are being tuned: the cache has no matching set"
    assert foreseen.price == "16 to 81 minutes on a Station"


def test_a_set_of_another_environment_is_a_miss() -> None:
    watched = Watched()
    text = "Cache file /x.json was created in a different environment (cublas: 1, 2). Ignoring cached configs."
    watched.say(STARTS.replace("Autotuning process starts ...", text), 406.0)
    (foreseen,) = watched.heard(TuningForeseen)
    assert isinstance(foreseen, TuningForeseen)
    assert foreseen.why == "the tuning cache was created in another environment (cublas: 1, 2)"


def test_a_foreign_set_does_not_promise_that_waiting_helps_the_next_boot() -> None:
    watched = Watched()
    watched.attention.take(
        Receipt("tuning_cache_ignored", {"difference": "cublas: cached 13.0, current 13.1"}, "", 409.0)
    )
    (foreseen,) = watched.heard(TuningForeseen)
    assert isinstance(foreseen, TuningForeseen)
    assert foreseen.why == "the tuning cache was created in another environment (cublas: cached 13.0, current 13.1)"
    assert foreseen.suggest[0] == (
        "waiting helps this boot only: with such a file nothing is saved, and every boot tunes again"
    )


def test_vital_signs_are_asked_for_every_two_seconds_of_the_container() -> None:
    class Counting(Watchful):
        asked = 0

        def vitals(self, container: str) -> Vitals:
            self.asked += 1
            return super().vitals(container)

    station = Counting()
    watched = Watched(V14, station)
    told = []
    for at in (0.5, 1.0, 2.0, 2.5, 4.0, 4.5, 0.5, 1.0):  # it was started again
        watched.attention.tick(watched.machine, at)
        told.append(station.asked)
    assert told == [1, 1, 1, 2, 2, 3, 4, 4]
