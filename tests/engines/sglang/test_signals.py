import pytest

from gb300serve.boot.events import Event, Progress, Receipt, StartupComplete
from gb300serve.engines.logs import boot_machine
from tests.boot.logs import diagnosed
from tests.boot.sglang_logs import SglangLog

OLDER = [
    "[2026-09-29 21:29:50] server_args=ServerArgs(model_path='/m', port=30007, random_seed=77, context_length=9)",
    "[2026-09-29 21:30:20 TP0] Load weight begin. avail mem=240.00 GB",
    "[2026-09-29 21:32:20 TP0] Load weight end. type=X, avail mem=40.1 GB, mem usage=199.3 GB.",
    "[2026-09-29 21:32:25 TP0] KV Cache is allocated. #tokens: 812345, K size: 10.1 GB",
    "[2026-09-29 21:32:26 TP0] Capture cuda graph begin. This can take up to several minutes.",
    "[2026-09-29 21:33:26 TP0] Capture cuda graph end. Time elapsed: 60.11 s. mem usage=1.20 GB.",
    "[2026-09-29 21:33:30] INFO:     Application startup complete.",
    "[2026-09-29 21:33:40] The server is fired up and ready to roll!",
]


def events(lines: list[str]) -> list[Event]:
    machine = boot_machine()
    return [event for line in lines for event in machine.feed(line)]


def test_a_good_boot_is_ready() -> None:
    diagnosis = diagnosed(SglangLog().ready().lines)
    assert (diagnosis.state, diagnosis.reason, diagnosis.boots) == ("ready", None, 1)
    assert [(phase.value, seconds) for phase, seconds in diagnosis.phases] == [
        ("starting", 10.0),
        ("loading-weights", 61.0),
        ("profiling", 4.0),
        ("sizing-kv-cache", 2.0),
        ("tuning-kernels", 30.0),
        ("capturing-graphs", 11.0),
        ("serving", 9.0),
    ]


def test_the_form_of_earlier_releases_is_ready_too() -> None:
    diagnosis = diagnosed(OLDER)
    assert (diagnosis.state, diagnosis.boots) == ("ready", 1)
    assert [(phase.value, seconds) for phase, seconds in diagnosis.phases] == [
        ("starting", 30.0),
        ("loading-weights", 120.0),
        ("profiling", 5.0),
        ("sizing-kv-cache", 1.0),
        ("capturing-graphs", 64.0),
        ("serving", 10.0),
    ]


def test_it_serves_when_it_has_answered_itself() -> None:
    lines = SglangLog().ready().lines
    assert diagnosed(lines[:-1]).state == "booting"
    assert [type(event) for event in events(lines) if isinstance(event, StartupComplete)] == [StartupComplete]


def test_receipts() -> None:
    found = {
        event.name: dict(event.values) for event in events(SglangLog().ready().lines) if isinstance(event, Receipt)
    }
    assert found == {
        "model_loading": {"seconds": 61.2, "gib": 179.2},
        "kv_cache_tokens": {"tokens": 812345, "k_gib": 12.4, "v_gib": 12.4},
        "tuning_cache": {"path": "/root/.cache/sglang/flashinfer/autotune/rank_tp0.json"},
        "graph_capture": {"seconds": 9.4, "gib": 0.71},
        "token_pool": {"tokens": 812345, "max_running_requests": 16, "context_len": 131072, "available_gib": 40.19},
        "startup_timings": {
            "load_weight": 61.2,
            "kv_cache_allocation": 0.44,
            "scheduler_e2e": 118.02,
            "tokenizer_e2e": 119.51,
        },
    }


def test_bars_count() -> None:
    found = [
        (event.phase.value, event.text, event.done, event.total)
        for event in events(SglangLog().ready().lines)
        if isinstance(event, Progress)
    ]
    assert found == [
        ("loading-weights", "Loading safetensors checkpoint shards", 0, 2),
        ("loading-weights", "Loading safetensors checkpoint shards", 1, 2),
        ("loading-weights", "Loading safetensors checkpoint shards", 2, 2),
        ("capturing-graphs", "Capturing batches (bs=16 avail_mem=40.31 GB)", 0, 2),
        ("capturing-graphs", "Capturing batches (bs=8 avail_mem=40.31 GB)", 1, 2),
        ("capturing-graphs", "Capturing batches (bs=4 avail_mem=40.31 GB)", 2, 2),
    ]


def test_layers_that_move_to_the_host_are_a_phase() -> None:
    log = SglangLog().arguments().said("Load weight begin. avail mem=247.30 GB", 3)
    log.said("[offloader] offload module_index=3 submodule=<class 'X'> params=['w13_weight'] memory_allocated=7", 1)
    log.said("[offloader] post_init scatter_src.nbytes=7 scatter_src.dtype=torch.uint8", 100)
    log.said("Load weight end. elapsed=110.00 s, type=X, avail mem=90.10 GB, mem usage=157.20 GB.", 9)
    assert [(phase.value, seconds) for phase, seconds in diagnosed(log.lines).phases] == [
        ("starting", 3.0),
        ("loading-weights", 101.0),
        ("offloading", 9.0),
        ("profiling", 0.0),
    ]


def test_a_pool_that_is_given_what_the_graphs_left() -> None:
    log = SglangLog().arguments().loaded()
    log.said("KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 999999, KV size: 40.00 GB", 1)
    log.captured()
    log.said(
        "Post-capture KV sizing: KV cache allocated. dtype: torch.bfloat16, #tokens: 900000, KV size: 36.00 GB,"
        " avail mem=4.00 GB"
    )
    assert [phase.value for phase, _ in diagnosed(log.lines).phases][-3:] == [
        "sizing-kv-cache",
        "capturing-graphs",
        "sizing-kv-cache",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "SIGTERM received. signum=None frame=None. Draining requests and shutting down...",
        "Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].",
    ],
)
def test_a_stop_on_purpose(text: str) -> None:
    assert diagnosed(SglangLog().ready().said(text, 60).lines).state == "stopped"


def test_requests_are_no_news() -> None:
    log = SglangLog().ready()
    log.said("Decode batch, #running-req: 1, #token: 97, token usage: 0.00, gen throughput (token/s): 33.1", 60)
    log.said('INFO:     127.0.0.1:50000 - "POST /v1/chat/completions HTTP/1.1" 200 OK')
    assert diagnosed(log.lines).state == "ready"


def test_the_figures_of_a_boot_that_serves_are_those_of_the_model_and_not_of_its_draft() -> None:
    log = SglangLog().arguments().loaded()
    log.said("Load weight end. elapsed=2.00 s, type=Draft, avail mem=66.10 GB, mem usage=2.00 GB.", 2)
    log.sized().said("KV Cache is allocated. #tokens: 812345, K size: 0.10 GB, V size: 0.10 GB").captured().serving()
    diagnosis = diagnosed(log.lines)
    assert diagnosis.values == {
        "weights_gib": 179.2,
        "kv_cache_gib": 24.8,
        "kv_cache_tokens": 812345,
        "concurrency": 6.2,
        "seconds_to_ready": 97.0,
    }
    assert diagnosis.summary == "SGLang with glm-5.3-flash is ready, 97 s after its start."
