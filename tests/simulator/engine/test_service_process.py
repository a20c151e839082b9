import signal
import socket
from pathlib import Path

import pytest

from gb300serve.simulator.host import cache_identity, cache_path, stored_configs
from tests.support.free_port import free_port
from tests.support.simulated import V14, changed, settings
from tests.support.stand_in import finish, serving, start

FAST = "20000"


def test_it_serves_until_it_is_asked_to_end() -> None:
    with serving(free_port(), "serve", *V14, SPEED=FAST) as served:
        code, out, err = served.terminated()
    assert code == 0
    assert "[shutdown] API server: shutdown triggered" in out
    assert err.endswith("(APIServer pid=1) INFO:     Finished server process [1]\n")
    assert "\rCapturing CUDA graphs (FULL): 100%" in err


@pytest.mark.parametrize(
    ("words", "code", "last"),
    [
        ((*V14, "--nope"), 2, "vllm: error: unrecognized arguments: --nope\n"),
        (changed("--cpu-offload-gb", "55"), 1, "Failed core proc(s): {}\n"),
        (changed("--tool-call-parser"), 1, "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser\n"),
    ],
)
def test_it_dies_as_the_engine_dies(words: tuple[str, ...], code: int, last: str) -> None:
    ended, _, err = finish(start(*words, SPEED=FAST))
    assert (ended, err[-len(last) :]) == (code, last)


def test_a_listener_on_the_port_is_met_after_the_arguments() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        code, out, err = finish(start(*V14, "--port", str(listener.getsockname()[1]), SPEED=FAST))
    assert code == 1
    assert err.endswith("OSError: [Errno 98] Address already in use\n")
    assert "non-default args" in out
    assert "Resolved architecture" not in out


def test_a_signal_ends_a_boot() -> None:
    process = start(*V14, "--port", str(free_port()), SPEED="100")
    assert process.stdout is not None
    while b"Resolved architecture" not in process.stdout.readline():
        pass
    process.send_signal(signal.SIGTERM)
    code, out, _ = finish(process)
    assert (code, "shutdown" in out) == (130, False)


def test_the_kernel_kills_without_a_word() -> None:
    code, _, err = finish(start(*V14, "--port", str(free_port()), SPEED=FAST, FAULT="host-oom"))
    assert code == -signal.SIGKILL
    assert err.splitlines()[-1].startswith("Loading safetensors checkpoint shards:")


def test_a_dead_engine_process_ends_with_zero() -> None:
    code, out, _ = finish(start(*V14, "--port", str(free_port()), SPEED=FAST, FAULT="crash-after-ready"))
    assert (code, "engine core exited unexpectedly" in out) == (0, True)


def test_tuning_is_remembered(tmp_path: Path) -> None:
    words = changed("--max-num-seqs", "24")
    found = settings(words)
    path = cache_path(found.checkpoint, cache_identity(found.checkpoint, found.options), "0.30.0")
    logs = []
    for _ in range(2):
        with serving(free_port(), *words, SPEED="1000000", CACHE=str(tmp_path), VERSION="0.30.0") as served:
            logs.append(served.terminated()[2])
    assert stored_configs(tmp_path, path) == 210
    assert ["Loaded 210 configs" in log for log in logs] == [False, True]
    assert ["(210 new, 0 from previous config)" in log for log in logs] == [True, False]


def test_a_cache_that_cannot_be_written_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with serving(free_port(), *V14, SPEED="1000000", CACHE=str(tmp_path / "file")):
        assert (tmp_path / "file").read_text() == ""


@pytest.mark.parametrize("said", [{"SPEED": "fast"}, {"MODEL": "a/b"}, {"FAULT": "no-such"}, {"BOOT": "{"}])
def test_a_wrong_environment_is_said(said: dict[str, str]) -> None:
    code, out, err = finish(start(*V14, **said))
    assert (code, out, err.startswith("simulated engine: ")) == (78, "", True)


def test_the_second_of_two_that_had_bound_ends() -> None:
    """As uvicorn, which calls listen(2) after `Application startup complete.`."""
    port = free_port()
    second = start(*V14, "--port", str(port), SPEED="300")
    assert second.stdout is not None
    while b"Resolved architecture" not in second.stdout.readline():
        pass
    with serving(port, *V14, SPEED=FAST):
        code, _, err = finish(second)
        assert (code, "Application startup complete." in err) == (1, True)
        assert err.rstrip().endswith("OSError: [Errno 98] Address already in use")
