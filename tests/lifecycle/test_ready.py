from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pytest

from gb300serve.boot.events import CauseFound, PhaseEntered, StartupComplete
from gb300serve.boot.phases import Phase
from gb300serve.boot.receipts import ExpectedLine
from gb300serve.core.errors import Action, BackendError
from gb300serve.core.ports import Response, UnreachableError
from gb300serve.core.values import Value
from gb300serve.lifecycle.backend import Container, Listener, LogLine, Vitals
from gb300serve.lifecycle.events import (
    Announcement,
    BecameReady,
    BootEvent,
    Elapsed,
    LogSeen,
    NotReady,
    ReceiptsChecked,
)
from gb300serve.lifecycle.failures import BootFailedError, BootTimedOutError, WrongServerError
from gb300serve.lifecycle.launch import Launch
from gb300serve.lifecycle.ready import ContainerGoneError, Served, await_ready, patience
from gb300serve.lifecycle.steps import AwaitReady
from gb300serve.lifecycle.tools import Tools
from tests.support.fake_backend import FakeBackend, Script
from tests.support.fake_clock import START
from tests.support.fake_http import BackendHttp, FixedHttp
from tests.support.launches import BOOT, COMPLETE, FAILS, KV_LINE, SERVES, backend, container, launch

V14 = launch()


@dataclass
class Watched:
    """A container of v14 that was started with a script, and what was told while it was watched."""

    script: Script
    speed: float = 1.0
    ran_for: float = 0.0
    told: list[Announcement] = field(default_factory=list)
    of: Launch = V14

    def __post_init__(self) -> None:
        self.use(backend(self.script))

    def use(self, station: FakeBackend) -> None:
        """Let the container live there."""
        self.station = station
        self.station.speed = self.speed
        started = START - self.ran_for / self.speed
        self.container = container(V14, created_at=started, started_at=started)
        self.station.add(self.container, self.script, V14.plan)
        self.http = BackendHttp(self.station)

    def run(self, *, running: bool = False) -> Served:
        tools = Tools(self.station, self.http, self.station.clock, self.told.append)
        return await_ready(AwaitReady(self.container.id, "dsv41-vllm", running=running), self.of, tools)

    def events(self) -> list[object]:
        return [each.event for each in self.told if isinstance(each, BootEvent)]


def test_ready_is_proved_and_told() -> None:
    watched = Watched(SERVES)
    served = watched.run()
    assert served.readiness.state == "ready"
    assert served.readiness.identity == "ours"
    assert not served.already
    assert 454.5 <= served.seconds < 457.0
    assert isinstance(watched.told[-1], BecameReady)
    assert (watched.told[-1].model, watched.told[-1].identity_known) == ("dsv41-flash-uva", True)
    phases = [event.phase for event in watched.events() if isinstance(event, PhaseEntered)]
    assert phases[:2] == [Phase.STARTING, Phase.LOADING_WEIGHTS]
    assert phases[-1] is Phase.SERVING


def test_phases_come_with_their_expected_seconds_and_lines_are_passed_on() -> None:
    watched = Watched(SERVES)
    watched.run()
    entered = [each for each in watched.told if isinstance(each, BootEvent) and isinstance(each.event, PhaseEntered)]
    expected = {each.event.phase: each.expected for each in entered if isinstance(each.event, PhaseEntered)}
    assert expected[Phase.LOADING_WEIGHTS] == 153.0
    assert expected[Phase.STARTING] is None
    assert [each.line.text for each in watched.told if isinstance(each, LogSeen)] == [text for _, text in BOOT]
    assert any(isinstance(each, Elapsed) and each.phase is Phase.LOADING_WEIGHTS for each in watched.told)


# Seconds between two lines, beside those of BOOT; 0: there are no others.
@pytest.mark.parametrize("every", [0.0, 0.001, 0.9])
@pytest.mark.parametrize("boot", [BOOT, BOOT[:-1]], ids=["complete", "untold"])
@pytest.mark.parametrize("ready_at", [453.37, 454.01, 454.49])
def test_ready_is_told_within_a_second_of_the_first_good_answer(
    boot: tuple[tuple[float, str], ...], every: float, ready_at: float
) -> None:
    """Wherever the watch stands just then: at the end of a thousand lines a second, or in silence."""
    count = int(1.2 / every) if every else 0
    more = ((ready_at - 0.1 + number * every, f"(EngineCore pid=118) line {number}") for number in range(count))
    watched = Watched(Script(tuple(sorted((*boot, *more))), ready_at=ready_at), ran_for=450.0)
    watched.run(running=True)
    assert isinstance(watched.told[-1], BecameReady)
    assert 0.0 <= watched.station.clock.now() - START + 450.0 - ready_at <= 1.0


def test_time_is_the_containers() -> None:
    watched = Watched(SERVES, speed=200.0)
    served = watched.run()
    assert watched.station.clock.now() - START < 6.0
    assert served.seconds >= 454.5


def test_what_serves_already_is_not_watched() -> None:
    watched = Watched(SERVES, ran_for=9000.0)
    served = watched.run(running=True)
    assert (served.already, served.seconds, watched.told) == (True, 9000.0, [])


def test_a_boot_that_was_left_is_watched_on() -> None:
    watched = Watched(SERVES, ran_for=100.0)
    served = watched.run(running=True)
    assert not served.already
    assert served.seconds < 457.0


def test_a_boot_whose_moment_of_start_is_not_known_yet_is_taken_up_with_it() -> None:
    """The command that started it was killed in the middle of that."""
    watched = Watched(SERVES)
    whole, hidden = watched.station.find, [3]

    def find(name: str) -> Container | None:
        found = whole(name)
        if found is None or not hidden[0]:
            return found
        hidden[0] -= 1
        return replace(found, started_at=None)

    watched.station.find = find  # type: ignore[method-assign]  # the fake's own, which tells of the start later
    served = watched.run(running=True)
    assert (served.readiness.state, served.container.started_at) == ("ready", watched.container.started_at)


def test_a_log_is_read_to_its_end_although_the_server_answers_at_its_first_line() -> None:
    watched = Watched(SERVES, ran_for=9000.0)
    watched.run()
    assert [each.line.text for each in watched.told if isinstance(each, LogSeen)] == [text for _, text in BOOT]


def test_startup_complete_is_not_ready() -> None:
    watched = Watched(replace(SERVES, ready_at=None))
    with pytest.raises(BootTimedOutError) as caught:
        watched.run()
    assert caught.value.message.startswith("dsv41-vllm gave no sign of life for 90")
    assert "waiting for: http://127.0.0.1:30006/v1/models does not respond: connection refused" in caught.value.message
    assert "dsv41-vllm is left running" in str(caught.value.hint)
    assert caught.value.waiting_for == "http://127.0.0.1:30006/v1/models does not respond: connection refused"
    # The reason is the same before and after the engine says that it started: it is told when it changes.
    assert [each for each in watched.told if isinstance(each, NotReady)] == []


def test_a_long_served_lane_that_does_not_answer_is_given_time() -> None:
    """The patience counts from the watch, not from lines of yesterday."""
    watched = Watched(replace(SERVES, ready_at=20_000.0), ran_for=19_800.0)
    served = watched.run(running=True)
    assert served.seconds >= 20_000.0


def test_a_completion_that_fails_is_not_ready() -> None:
    watched = Watched(SERVES)
    watched.http = BackendHttp(watched.station, completes=False)
    with pytest.raises(BootTimedOutError) as caught:
        watched.run()
    assert "/v1/chat/completions returned status 500" in caught.value.waiting_for
    assert [each.why for each in watched.told if isinstance(each, NotReady)][-1] == caught.value.waiting_for


def test_a_container_that_ends_has_failed() -> None:
    watched = Watched(FAILS)
    with pytest.raises(BootFailedError) as caught:
        watched.run()
    error = caught.value
    assert error.exit_code == 8
    assert error.message.splitlines()[0] == KV_LINE
    assert error.message.splitlines()[1].startswith("kv-cache-too-small in phase ")
    assert error.ending.reason == "kv-cache-too-small"
    assert error.ending.diagnosis.values["needed_gib"] == 2.2
    assert error.ending.tail[-1] == KV_LINE
    assert (error.ending.exit_code, error.ending.oom_killed, error.ending.gone) == (1, False, False)
    assert any(isinstance(event, CauseFound) for event in watched.events())


def test_a_killed_engine_names_no_cause() -> None:
    watched = Watched(Script(BOOT[:3], ends_at=60.0, exit_code=137, oom_killed=True))
    with pytest.raises(BootFailedError) as caught:
        watched.run()
    assert caught.value.message.splitlines()[0] == (
        "the container was killed because host memory ran out; its log stops without an error"
    )
    assert caught.value.ending.reason == "host-oom-killed"


def test_a_named_cause_whose_engine_hangs_is_a_failure() -> None:
    watched = Watched(replace(FAILS, ends_at=None))
    with pytest.raises(BootFailedError) as caught:
        watched.run()
    assert caught.value.message.splitlines()[0] == KV_LINE
    assert caught.value.ending.exit_code is None
    assert watched.station.clock.now() - START < 378.0 + 70.0


def test_an_engine_gets_wall_clock_seconds_to_end_however_fast_its_own_clock() -> None:
    """A simulated Station at 800: 60 s of its time are 0.075 s, its engine ends 2 s later by the wall clock."""
    ends_at = 378.0 + 2.0 * 800
    watched = Watched(replace(FAILS, ends_at=ends_at), speed=800.0)
    with pytest.raises(BootFailedError) as caught:
        watched.run()
    assert caught.value.ending.exit_code == 1


def test_silence_is_waited_for_as_long_as_the_phase_may_take() -> None:
    watched = Watched(Script(BOOT[:3]))
    with pytest.raises(BootTimedOutError) as caught:
        watched.run()
    assert caught.value.waiting_for == "the end of the phase loading-weights"
    assert 1800.0 < caught.value.silent < 1802.0


def test_another_server_on_the_port_is_told_apart() -> None:
    watched = Watched(replace(SERVES, ready_at=None))
    watched.http = BackendHttp(watched.station, stranger_started_at=START - 500.0)
    with pytest.raises(WrongServerError) as caught:
        watched.run()
    assert caught.value.message.startswith(
        "another server answers at http://127.0.0.1:30006; the container dsv41-vllm "
    )
    assert any(isinstance(event, StartupComplete) for event in watched.events())


class TwoListen:
    """Another program has 127.0.0.1, the engine every address."""

    def on(self, port: int) -> Listener | None:
        return self.each_on(port)[0]

    def each_on(self, port: int) -> tuple[Listener, ...]:
        return (Listener(port, "127.0.0.1", "python3, process 9", 9), Listener(port, "0.0.0.0", "vllm, process 7", 7))


class TellingBackend(FakeBackend):
    def processes(self, container: str) -> frozenset[int]:
        return frozenset({7}) if self.find(container) else frozenset()


def test_a_program_that_answers_in_its_place_is_named() -> None:
    watched = Watched(replace(SERVES, ready_at=None))
    watched.use(TellingBackend(clock=watched.station.clock, images=watched.station.images))
    other = FixedHttp({"/v1/models": Response(404, "no such page")})
    tools = Tools(watched.station, other, watched.station.clock, listeners=TwoListen())
    with pytest.raises(WrongServerError) as caught:
        await_ready(AwaitReady(watched.container.id, "dsv41-vllm"), V14, tools)
    assert caught.value.message == (
        "another server answers at http://127.0.0.1:30006: python3, process 9 listens on 127.0.0.1:30006; "
        "the container dsv41-vllm shares the port with it and will never be reached"
    )
    assert caught.value.suggest == ("stop that server; to identify it: ps -fp 9", Action("up", "launch again"))


def test_a_program_that_listens_in_its_place_is_not_ready_however_well_it_answers() -> None:
    """Another of our own engines that was started at the same moment."""
    watched = Watched(SERVES)
    watched.use(TellingBackend(clock=watched.station.clock, images=watched.station.images))
    tools = Tools(watched.station, BackendHttp(watched.station), watched.station.clock, listeners=TwoListen())
    with pytest.raises(WrongServerError, match="python3, process 9 listens on"):
        await_ready(AwaitReady(watched.container.id, "dsv41-vllm"), V14, tools)


def test_another_server_while_booting_is_not_believed() -> None:
    watched = Watched(Script(BOOT[:3], ends_at=60.0))
    watched.http = BackendHttp(watched.station, stranger_started_at=START - 500.0)
    with pytest.raises(BootFailedError):
        watched.run()


def test_a_port_that_takes_connections_and_says_nothing_does_not_hold_up_the_log() -> None:
    traceback = tuple((60.0, f"  frame {number}") for number in range(100))
    watched = Watched(Script((*BOOT[:3], *traceback), ends_at=60.0))

    class Silent(BackendHttp):
        def get(self, url: str, timeout: float, headers: Mapping[str, str] | None = None) -> Response:
            watched.station.clock.sleep(timeout)
            raise UnreachableError(url, "timed out")

    watched.http = Silent(watched.station)
    with pytest.raises(BootFailedError):
        watched.run()
    assert watched.station.clock.now() - START < 80.0


def test_another_container_on_the_port_that_started_after_ours_is_not_ours() -> None:
    watched = Watched(replace(SERVES, ready_at=None))
    started = watched.container.started_at or 0.0
    watched.station.add(container(V14, id="b" * 64, name="pasted", labels={}, started_at=started + 20.0), SERVES)
    watched.http = http = BackendHttp(watched.station, stranger_started_at=started + 20.1)
    with pytest.raises(WrongServerError):
        watched.run()
    assert http.asked == 0


def test_a_container_that_was_removed_is_gone() -> None:
    watched = Watched(SERVES)
    watched.station.stop(watched.container.id, 1.0)
    watched.station.remove(watched.container.id)
    with pytest.raises(ContainerGoneError, match="container dsv41-vllm no longer exists"):
        watched.run()


@dataclass
class Vanishing(FakeBackend):
    """Removed by force while its log is followed: Docker says so to whoever asks, in one way or another."""

    refuses: bool = False
    listed: bool = False

    def follow(self, container: str, every: float) -> Iterator[LogLine | None]:
        for line in super().follow(container, every):
            yield line
            if line is not None and "Loading weights took" in line.text:
                self._change(container, state="removing", exit_code=137)
                if not self.listed:
                    del self._containers[container]
                if self.refuses:
                    raise BackendError("no such container")
                return


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("listed", [False, True])
def test_a_container_that_is_removed_while_it_boots(refuses: bool, listed: bool) -> None:
    watched = Watched(SERVES)
    watched.use(Vanishing(refuses=refuses, listed=listed))
    with pytest.raises(BootFailedError, match="the container was removed while it booted") as caught:
        watched.run()
    assert (caught.value.ending.gone, caught.value.ending.exit_code) == (True, None)


def test_a_container_that_was_started_again_meanwhile_is_not_ours_to_call_ready() -> None:
    watched = Watched(SERVES)
    station = watched.station

    class Restarting(BackendHttp):
        def post_json(self, url: str, body: Value, headers: Mapping[str, str], timeout: float) -> Response:
            station.stop(watched.container.id, 1.0)
            station.clock.sleep(5.0)
            station.start(watched.container.id)
            return Response(200, '{"choices": [{"message": {"content": "Ready"}}]}')

    watched.http = Restarting(station)
    with pytest.raises(BootFailedError):
        watched.run()


def test_a_cut_stream_is_followed_again() -> None:
    watched = Watched(SERVES)
    whole = watched.station.follow
    cuts = [3]

    def follow(container: str, every: float) -> Iterator[LogLine | None]:
        for line in whole(container, every):
            if line is not None and line.text == BOOT[3][1] and cuts[0]:
                cuts[0] -= 1
                return
            yield line

    watched.station.follow = follow  # type: ignore[method-assign]  # the fake's own stream, cut three times
    assert watched.run().readiness.state == "ready"
    assert [each.line.text for each in watched.told if isinstance(each, LogSeen)].count(COMPLETE) == 1


@dataclass
class Away(FakeBackend):
    """It is upgraded from 200 s to `until` s of the boot: nothing but the log, which waits for it, goes on."""

    until: float = 230.0

    following: bool = False

    def follow(self, container: str, every: float) -> Iterator[LogLine | None]:
        lines = super().follow(container, every)
        while True:
            self.following = True
            line = next(lines)
            self.following = False
            yield line

    def elapsed(self, container: str) -> float:
        at = super().elapsed(container)
        if 200.0 < at < self.until and not self.following:
            raise BackendError("no Docker Engine answers")
        return at


def test_an_engine_of_containers_may_be_away_for_a_while() -> None:
    watched = Watched(SERVES)
    watched.use(Away())
    assert watched.run().readiness.state == "ready"
    assert [each.line.text for each in watched.told if isinstance(each, LogSeen)] == [text for _, text in BOOT]
    watched.use(Away(until=400.0))
    with pytest.raises(BackendError, match="no Docker Engine answers"):
        watched.run()


OFFLOADED = ExpectedLine("Total CPU offloaded parameters: {value}", 61.17, 0.01)
OFFLOADED_LINE = (100.0, "(EngineCore pid=118) INFO 11-29 19:51:43 [uva.py:68] Total CPU offloaded parameters: {}")


def with_offload(gib: str) -> Script:
    at, text = OFFLOADED_LINE
    return replace(SERVES, lines=tuple(sorted((*BOOT, (at, text.format(gib))))))


def test_receipts_are_told_before_ready_and_handed_on() -> None:
    watched = Watched(with_offload("61.17"), of=replace(V14, receipts=(OFFLOADED,)))
    served = watched.run()
    assert served.receipts[0].state == "kept"
    told = [type(each) for each in watched.told if isinstance(each, ReceiptsChecked | BecameReady)]
    assert told == [ReceiptsChecked, BecameReady]


def test_a_receipt_that_may_degrade_lets_it_serve() -> None:
    served = Watched(with_offload("0.00"), of=replace(V14, receipts=(OFFLOADED,))).run()
    assert served.receipts[0].state == "different"


def test_a_receipt_that_must_be_kept_fails_the_boot_by_name() -> None:
    watched = Watched(SERVES, of=replace(V14, receipts=(replace(OFFLOADED, missing="fail"),)))
    with pytest.raises(BootFailedError) as caught:
        watched.run()
    sentence = "missing: Total CPU offloaded parameters: {value} (expected 61.17)"
    assert caught.value.ending.unkept[0] == sentence
    assert caught.value.message.splitlines()[:2] == ["it serves, but not as the recipe describes", sentence]
    assert not any(isinstance(each, BecameReady) for each in watched.told)


@dataclass
class Busy(FakeBackend):
    """One whose container computes all the time."""

    def vitals(self, container: str) -> Vitals:
        return Vitals(self.elapsed(container))


def test_a_silent_boot_that_computes_is_waited_for_four_times_as_long() -> None:
    silent = Script(BOOT[:3])
    idle, busy = Watched(silent), Watched(silent)
    busy.use(Busy(clock=busy.station.clock, script=silent))
    waited = []
    for watched in (idle, busy):
        with pytest.raises(BootTimedOutError) as caught:
            watched.run()
        waited.append(caught.value.silent)
    assert waited[1] / waited[0] == pytest.approx(4.0, rel=0.01)


def test_patience_follows_the_phase_and_what_is_expected() -> None:
    assert patience(None, {}) == 1800.0
    assert patience(Phase.LOADING_WEIGHTS, {"loading-weights": 153.0}) == 1800.0
    assert patience(Phase.LOADING_WEIGHTS, {"loading-weights": 600.0}) == 6000.0
    assert patience(Phase.TUNING_KERNELS, {"tuning-kernels": 7.0}) == 5400.0
