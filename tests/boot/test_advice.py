import re

import pytest

from gb300serve.boot.advice import NOTHING_MORE, SENTENCES, advise, advise_stalled
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
from gb300serve.boot.signals.model import EngineLog
from gb300serve.engines.logs import LOGS
from gb300serve.engines.vllm.log import LOG
from tests.boot.cases import engine
from tests.boot.logs import Log, diagnosed


def test_advice_names_the_numbers_of_the_log() -> None:
    text = (
        "ValueError: To serve at least one request with the model's max seq len (262144), (3.41 GiB KV cache is needed,"
        " which is larger than the available KV cache memory (2.02 GiB). Based on the available memory, the estimated"
        " maximum model length is 155264."
    )
    log = Log().arguments("'max_model_len': 262144, 'cpu_offload_gb': 54.0, 'gpu_memory_utilization': 0.95").engine()
    assert diagnosed(engine(text, log)).advice == (
        "One request of max_model_len 262144 needs 3.41 GiB of KV cache, 2.02 are left.",
        "max_model_len 155264 would fit.",
        "Or offload more (cpu_offload_gb is 54.0).",
        "Or raise gpu_memory_utilization (0.95).",
    )


def test_sentences_without_their_numbers_are_left_out() -> None:
    assert advise(Reason.KV_CACHE_TOO_SMALL, {}, LOG) == (NOTHING_MORE,)
    assert advise(Reason.PORT_IN_USE, {"port": 8123}, LOG) == (
        "Port 8123 is in use. `ss -ltnp 'sport = :8123'` shows the process: stop it, or change the port.",
    )


def test_guesses_of_libraries_are_called_guesses() -> None:
    values: dict[str, int | float | str] = {"waited_seconds": 900, "phase": "tuning-kernels"}
    assert advise(Reason.ENGINE_STARTUP_TIMEOUT, values, LOG) == (
        "The API server gave up after 900 s, in the phase tuning-kernels: the boot was slow, not broken.",
        "Set VLLM_ENGINE_READY_TIMEOUT_S to more than the whole boot takes.",
        "'Slow weight loading' in the message is a guess of the library; the phase above is from the log.",
    )


def test_long_values_are_cut() -> None:
    (first, *_) = advise(Reason.UNKNOWN_PARSER, {"parser": "x" * 400}, LOG)
    assert first == f"The engine has no parser {'x' * 299}…."


@pytest.mark.parametrize("log", LOGS)
def test_every_reason_has_advice(log: EngineLog) -> None:
    texts = [text for table in (SENTENCES, *(each.advice for each in LOGS)) for row in table.values() for text in row]
    everything = dict.fromkeys(re.findall(r"\{(\w+)\}", " ".join(texts)), "1")
    without = {reason for reason in Reason if advise(reason, everything, log) == (NOTHING_MORE,)}
    assert without == (set() if log is LOG else {Reason.OFFLOAD_NOT_APPLIED})


def test_a_stall_is_told_in_minutes() -> None:
    assert advise_stalled(Phase.LOADING_WEIGHTS, 2940.0)[0] == (
        "No progress in the phase loading-weights for 49 minutes; heartbeats do not count as progress."
    )


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all", "`sudo nvidia-ctk cdi generate"),
        (
            "docker: permission denied while trying to connect to the docker API at unix:///a",
            "`sudo usermod -aG docker",
        ),
        ("Fatal Python error: Bus error", "--ipc=host"),
        ("Fatal Python error: Segmentation fault", "(Segmentation fault)"),
        ("Error: statfs /srv/a b: no such file or directory", "`ls -ld '/srv/a b'`"),
        ("nvidia-container-cli: initialization error: nvml error: driver/library version mismatch", "`sudo reboot`"),
    ],
)
def test_advice_fits_the_form_of_the_failure(line: str, command: str) -> None:
    assert command in diagnosed([line]).advice[0]


def test_values_of_a_log_are_quoted_in_commands() -> None:
    taken = 'Error: the container name "a;reboot" is already in use by 0fe1.'
    assert "`docker ps -a --filter name='a;reboot'`" in diagnosed([taken]).advice[0]


def test_a_fixed_kv_cache_that_does_not_fit() -> None:
    """An H200 with weights of 27.4 GiB: at most 111 GiB were free after loading."""
    text = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 10.83 GiB. GPU 0 has a total capacity of"
        " 139.80 GiB of which 3.20 GiB is free."
    )
    log = Log().arguments("'kv_cache_memory_bytes': 139586437120").engine()
    log.core("Model loading took 27.4 GiB memory and 2.16 seconds", 3)
    log.core("Initial profiling/warmup run took 1.34 s", 3)
    assert diagnosed(engine(text, log)).advice == (
        "kv_cache_memory_bytes fixes the KV cache at 130.00 GiB, whatever gpu_memory_utilization says: 10.83 GiB more"
        " were requested, 3.20 GiB were free.",
        "The weights take 27.4 of 139.8 GiB: set kv_cache_memory_bytes to 119185342464 at most (111 GiB), less what"
        " graphs and activations need.",
        "Or remove it: the engine then sizes the KV cache itself.",
    )


def test_a_negative_kv_cache_says_how_much_is_missing() -> None:
    values: dict[str, int | float | str] = {
        "available_gib": -3.5,
        "cpu_offload_gb": "10",
        "gpu_memory_utilization": "0.9",
    }
    assert advise(Reason.KV_CACHE_NEGATIVE, values, LOG) == (
        "Weights, activations and graphs exceed the memory that the engine may use: -3.5 GiB are left.",
        "Offload at least 3.50 GiB more (cpu_offload_gb is 10), and what the KV cache is to have.",
        "Or raise gpu_memory_utilization (0.9): each 0.01 adds a hundredth of the GPU's memory.",
    )


@pytest.mark.parametrize(("free", "context"), [(139.29, True), (120.0, False)])
def test_who_holds_the_memory_of_the_gpu(free: float, context: bool) -> None:
    values: dict[str, int | float | str] = {"free_gib": free, "total_gib": 139.8, "desired_gib": 139.8}
    values["gpu_memory_utilization"] = 1.0
    advice = " ".join(advise(Reason.GPU_MEMORY_IN_USE, values, LOG))
    assert ("No other process is in the way" in advice, "another process holds" in advice) == (context, not context)
    assert f"to {'0.996' if context else '0.858'} or less" in advice
