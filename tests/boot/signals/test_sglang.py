from tests.boot.logs import diagnosed

BOOT = [
    "[2026-09-29 21:29:50] server_args=ServerArgs(model_path='/m', port=30007, context_length=9)",
    "[2026-09-29 21:30:20 TP0] Load weight begin. avail mem=240.00 GB",
    "[2026-09-29 21:32:20 TP0] Load weight end. type=X, avail mem=40.1 GB, mem usage=199.3 GB.",
    "[2026-09-29 21:32:25 TP0] KV Cache is allocated. #tokens: 812345, K size: 10.1 GB",
    "[2026-09-29 21:32:26 TP0] Capture cuda graph begin. This can take up to several minutes.",
    "[2026-09-29 21:33:26 TP0] Capture cuda graph end. Time elapsed: 60.11 s. mem usage=1.20 GB.",
    "[2026-09-29 21:33:30] INFO:     Application startup complete.",
    "[2026-09-29 21:33:40] The server is fired up and ready to roll!",
]


def test_a_good_boot_of_sglang_is_ready() -> None:
    diagnosis = diagnosed(BOOT)
    assert (diagnosis.state, diagnosis.boots) == ("ready", 1)
    assert [(phase.value, seconds) for phase, seconds in diagnosis.phases] == [
        ("starting", 30.0),
        ("loading-weights", 120.0),
        ("profiling", 5.0),
        ("sizing-kv-cache", 1.0),
        ("capturing-graphs", 60.0),
        ("serving", 14.0),
    ]


def test_the_exception_and_not_the_signal_is_the_cause() -> None:
    lines = [
        *BOOT[:2],
        "[2026-09-29 21:31:20 TP0] Scheduler hit an exception: Traceback (most recent call last):",
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        "[2026-09-29 21:31:22] Received sigquit from a child process. It usually means the child failed.",
    ]
    diagnosis = diagnosed(lines)
    assert (diagnosis.state, diagnosis.reason, diagnosis.evidence[0].line) == ("failed", "kv-cache-negative", 4)
