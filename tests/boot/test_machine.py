from gb300serve.boot.events import (
    BootBegan,
    CauseFound,
    PhaseEntered,
    Progress,
    Receipt,
    Stalled,
    StartupComplete,
    Stopped,
    TuningHit,
    TuningMiss,
)
from gb300serve.boot.phases import Phase
from gb300serve.engines.logs import boot_machine
from tests.boot.logs import HEARTBEAT, Log, diagnosed, feed


def test_a_good_boot_is_ready_and_its_phases_have_seconds() -> None:
    diagnosis = diagnosed(Log().boot().lines)
    assert diagnosis.as_json() == {
        "schema": "gb300serve.diagnosis/1",
        "state": "ready",
        "phase": "serving",
        "reason": None,
        "values": {
            "engine_version": "0.30.0",
            "weights_gib": 201.5,
            "kv_cache_gib": 6.02,
            "kv_cache_tokens": 2870016,
            "concurrency": 10.95,
            "seconds_to_ready": 282.0,
        },
        "evidence": [],
        "advice": [],
        "phases": [
            {"name": "starting", "seconds": 25.0},
            {"name": "loading-weights", "seconds": 130.0},
            {"name": "profiling", "seconds": 61.0},
            {"name": "sizing-kv-cache", "seconds": 40.0},
            {"name": "tuning-kernels", "seconds": 7.25},
            {"name": "capturing-graphs", "seconds": 12.75},
            {"name": "serving", "seconds": 6.0},
        ],
        "boots": 1,
        "summary": "vLLM 0.30.0 with /ckpt (DeepseekV41ForCausalLM) is ready, 282 s after its start.",
    }


def test_a_good_boot_tells_what_happens_in_order() -> None:
    _, events = feed(Log().boot().lines)
    told = [event for event in events if not isinstance(event, Receipt | Progress)]
    assert told == [
        BootBegan(1),
        PhaseEntered(Phase.STARTING, 0.0),
        PhaseEntered(Phase.LOADING_WEIGHTS, 25.0),
        PhaseEntered(Phase.PROFILING, 155.0),
        PhaseEntered(Phase.SIZING_KV_CACHE, 216.0),
        PhaseEntered(Phase.TUNING_KERNELS, 256.0),
        TuningHit(150, 257.25),
        PhaseEntered(Phase.CAPTURING_GRAPHS, 263.25),
        PhaseEntered(Phase.SERVING, 276.0),
        StartupComplete(282.0),
    ]


def test_receipts_carry_their_figures() -> None:
    _, events = feed(Log().boot().lines)
    receipts = [(event.name, event.values) for event in events if isinstance(event, Receipt)]
    path = f"/root/.cache/vllm/flashinfer_autotune_cache/0.6.18/103a/{'ab' * 32}/autotune_configs.json"
    assert receipts == [
        ("architecture", {"architecture": "DeepseekV41ForCausalLM"}),
        ("engine_version", {"version": "0.30.0"}),
        ("offloaded_gib", {"gib": 63.28}),
        ("model_loading", {"gib": 201.5, "seconds": 131.04}),
        ("graph_capture", {"seconds": 30, "gib": 1.41}),
        ("kv_cache_gib", {"gib": 6.02}),
        ("kv_cache_tokens", {"tokens": 2870016, "max_model_len": 262144, "concurrency": 10.95}),
        ("tuning_cache", {"path": path, "identity": "ab" * 32}),
        ("tuning_loaded", {"configs": 150, "path": path}),
        ("tuning_saved", {"configs": 150, "path": path, "new": 0, "previous": 150}),
        ("graph_capture", {"seconds": 13, "gib": 1.02}),
        ("engine_init_seconds", {"seconds": 260.1}),
        ("server", {"url": "http://0.0.0.0:31007"}),
    ]


def test_times_of_the_caller_go_before_the_stamps() -> None:
    machine = boot_machine()
    lines = Log().boot().lines
    events = [event for index, line in enumerate(lines) for event in machine.feed(line, at=float(index))]
    entered = [(event.phase, event.at) for event in events if isinstance(event, PhaseEntered)]
    assert entered == [
        (Phase.STARTING, 0.0),
        (Phase.LOADING_WEIGHTS, 3.0),
        (Phase.PROFILING, 8.0),
        (Phase.SIZING_KV_CACHE, 10.0),
        (Phase.TUNING_KERNELS, 12.0),
        (Phase.CAPTURING_GRAPHS, 15.0),
        (Phase.SERVING, 17.0),
    ]


def test_a_line_is_counted_once_however_often_a_bar_is_redrawn_in_it() -> None:
    machine = boot_machine()
    machine.feed("(EngineCore pid=9) INFO 12-03 08:00:00 [a.py:1] Starting to load model /ckpt...\n", 5.0)
    bar = "\r".join(f"Loading safetensors checkpoint shards: {n}% Completed | {n}/9 [00:0{n}<00:01]" for n in range(9))
    assert machine.feed(bar + "\n", 6.0) == (
        Progress(Phase.LOADING_WEIGHTS, "Loading safetensors checkpoint shards", 0, 9, 6.0),
        Progress(Phase.LOADING_WEIGHTS, "Loading safetensors checkpoint shards", 8, 9, 6.0),
    )
    found = machine.feed("OSError: [Errno 98] Address already in use\n", 7.0)
    assert [event.line_number for event in found if isinstance(event, CauseFound)] == [3]


def test_startup_is_told_once_and_a_stop_is_no_failure() -> None:
    log = Log().boot().api("[shutdown] API server: shutdown triggered", 100)
    log.api("AsyncLLM output_handler failed.", level="ERROR")
    log.api("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.", level="ERROR")
    machine, events = feed(log.raw("INFO:     Application shutdown complete.").lines)
    assert [event for event in events if isinstance(event, StartupComplete | Stopped)] == [
        StartupComplete(282.0),
        Stopped(382.0),
    ]
    diagnosis = machine.result()
    assert (diagnosis.state, diagnosis.phase, diagnosis.reason, diagnosis.evidence) == ("stopped", "serving", None, ())


def test_a_boot_that_is_asked_to_end_is_stopped_where_it_was() -> None:
    log = Log().arguments().engine().loaded()
    log.core("[shutdown] EngineCore: trigger received signal=SIGTERM", 3).raw("KeyboardInterrupt")
    diagnosis = diagnosed(log.lines)
    assert (diagnosis.state, diagnosis.phase, diagnosis.reason) == ("stopped", "profiling", None)


def test_a_cut_log_is_booting() -> None:
    lines = Log().arguments().engine().loaded().lines
    diagnosis = diagnosed([*lines[:-3], "\rLoading safetensors checkpoint shards:  4"])
    assert (diagnosis.state, diagnosis.phase, diagnosis.boots) == ("booting", "loading-weights", 1)


def test_an_empty_log_is_booting_without_a_boot() -> None:
    diagnosis = boot_machine().result()
    assert (diagnosis.state, diagnosis.phase, diagnosis.boots) == ("booting", "starting", 0)


def test_unloaded_kernels_are_tuned() -> None:
    log = Log().arguments().engine().loaded().sized()
    tuned = Log(second=log.second).tuned(configs=0).lines
    cut = [*log.lines, *tuned[:2]]
    assert diagnosed(cut).state == "tuning"
    machine, events = feed([*cut, *Log(second=log.second).heartbeats(50).lines])
    assert [event for event in events if isinstance(event, TuningMiss)] == [TuningMiss(0, 276.0)]
    assert (machine.result().state, machine.result().phase) == ("tuning", "tuning-kernels")


def test_a_loaded_set_that_lacks_kernels_is_a_miss_after_a_minute() -> None:
    log = Log().arguments().engine().loaded().sized()
    tuned = Log(second=log.second).tuned().lines
    machine, events = feed([*log.lines, *tuned[:3], *Log(second=log.second + 42).heartbeats(3).lines])
    assert [event for event in events if isinstance(event, TuningMiss)] == [TuningMiss(150, 318.0)]
    assert machine.result().state == "tuning"


def test_a_tuned_boot_says_how_many_kernels_were_new() -> None:
    _, events = feed(Log().arguments().engine().loaded().sized().tuned(configs=0).lines)
    saved = [event.values["new"] for event in events if isinstance(event, Receipt) and event.name == "tuning_saved"]
    assert saved == [150]
    assert [type(event) for event in events if isinstance(event, TuningHit | TuningMiss)] == [TuningMiss]


def test_silence_is_told_by_ticks() -> None:
    machine = boot_machine()
    assert machine.tick(1.0) == (BootBegan(1), PhaseEntered(Phase.STARTING, 0.0))
    machine.feed("(EngineCore pid=9) INFO 12-03 08:00:00 [a.py:1] Starting to load model /ckpt...", 20.0)
    assert machine.tick(1819.0) == ()
    assert machine.tick(1821.0) == (Stalled(Phase.LOADING_WEIGHTS, 1801.0, 1821.0),)
    assert machine.tick(1900.0) == ()
    assert machine.result().state == "stalled"
    machine.feed("Loading safetensors checkpoint shards:   1% Completed | 1/62 [00:41<41:00, 41.0s/it]", 1910.0)
    assert machine.result().state == "booting"


def test_heartbeats_are_no_progress() -> None:
    log = Log().arguments().engine()
    log.core("Starting to load model /ckpt...", 5).raw("\rLoading safetensors shards:  0% Completed | 0/9 [00:00<?]")
    log.raw("\rLoading safetensors shards:  11% Completed | 1/9 [02:00<16:00]")
    still = diagnosed([*log.lines, *Log(second=log.second + 120).heartbeats(30).lines])
    assert (still.state, still.evidence) == ("booting", ())
    stalled = diagnosed([*log.lines, *Log(second=log.second + 120).heartbeats(31).lines])
    assert (stalled.state, stalled.phase, stalled.reason) == ("stalled", "loading-weights", None)
    assert stalled.values == {"silent_seconds": 1860.0}
    assert [item.line for item in stalled.evidence] == [6]


def test_tuning_is_never_stalled() -> None:
    log = Log().arguments().engine().loaded().sized()
    cut = [*log.lines, *Log(second=log.second).tuned(configs=0).lines[:2]]
    assert diagnosed([*cut, *Log(second=log.second + 40).heartbeats(200).lines]).state == "tuning"


def test_a_server_that_serves_may_be_silent() -> None:
    machine, _ = feed(Log().boot().lines)
    assert machine.tick(90000.0) == ()
    assert machine.result().state == "ready"


def test_the_last_of_several_boots_counts() -> None:
    first = Log().arguments().engine().failing("RuntimeError: the disk said no")
    diagnosis = diagnosed([*first.lines, *Log(second=600).boot().lines])
    assert (diagnosis.state, diagnosis.reason, diagnosis.boots) == ("ready", None, 2)
    assert diagnosis.phases[0] == (Phase.STARTING, 25.0)


def test_memory_does_not_grow_with_the_log() -> None:
    machine, _ = feed(Log().boot().lines)
    for number in range(3000):
        machine.feed(f"(APIServer pid=1) ERROR 12-03 09:00:00 [serving.py:9] ValueError: request {number} is bad")
        machine.feed(f"(EngineCore pid=7) INFO 12-03 09:00:00 [x.py:1] {HEARTBEAT}")
    course = machine._boot
    assert course is not None
    assert (len(course.findings), len(course.recent)) == (0, 16)
    assert machine.result().state == "ready"


def test_a_bar_that_is_seen_early_moves_the_boot_on_and_counts_as_no_line() -> None:
    machine = boot_machine()
    machine.feed(
        "(EngineCore pid=1) INFO 11-29 19:50:05 [gpu_model_runner.py:4979] Starting to load model /model...", 1.0
    )
    bar = "Loading safetensors checkpoint shards:  50% Completed | 65/131 [01:00<01:00,  1.00s/it]"
    (progress,) = machine.feed_bar(bar, 61.0)
    assert isinstance(progress, Progress)
    assert (progress.done, progress.total, progress.at) == (65, 131, 61.0)
    machine.tick(100.0)
    assert machine.quiet_from == 61.0
    machine.feed("ValueError: something", 110.0)
    assert machine.result().evidence[0].line == 2


def test_nothing_was_said_yet() -> None:
    assert boot_machine().quiet_from == 0.0


def test_a_note_that_the_program_goes_on_is_no_event() -> None:
    machine = boot_machine()
    machine.feed("(APIServer pid=1) INFO 12-03 08:00:00 [a.py:1] non-default args: {'port': 31007}", 0.0)
    note = "(APIServer pid=1) Could not cache non-existence of file. Will ignore error and continue. Error: [Errno 30]"
    assert machine.feed(f"{note} Read-only file system: '/hub/a'", 1.0) == ()
