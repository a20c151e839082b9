import re

from gb300serve.boot.advice import NOTHING_MORE, SENTENCES, advise, advise_stalled
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason
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
        "Or make room: offload more (cpu_offload_gb is 54.0).",
        "Or raise gpu_memory_utilization (0.95).",
    )


def test_sentences_without_their_numbers_are_left_out() -> None:
    assert advise(Reason.KV_CACHE_TOO_SMALL, {}) == (NOTHING_MORE,)
    assert advise(Reason.PORT_IN_USE, {"port": 8123}) == (
        "Port 8123 is taken: `ss -ltnp 'sport = :8123'` names the process; stop it or change port.",
    )


def test_guesses_of_libraries_are_called_guesses() -> None:
    values: dict[str, int | float | str] = {"waited_seconds": 900, "phase": "tuning-kernels"}
    assert advise(Reason.ENGINE_STARTUP_TIMEOUT, values) == (
        "The API server waited 900 s and gave up; the engine was in the phase tuning-kernels: slow, not broken.",
        "Set VLLM_ENGINE_READY_TIMEOUT_S to more than the whole boot takes.",
        "'Slow weight loading' in the message is the library's guess; the phase above is what the log shows.",
    )


def test_long_values_are_cut() -> None:
    (first, *_) = advise(Reason.UNKNOWN_PARSER, {"parser": "x" * 400})
    assert first == f"This engine has no parser {'x' * 299}…."


def test_every_reason_has_advice() -> None:
    names = {name for sentences in SENTENCES.values() for text in sentences for name in re.findall(r"\{(\w+)\}", text)}
    everything = dict.fromkeys(names, "1")
    assert [reason for reason in Reason if not advise(reason, everything)] == []


def test_a_stall_is_told_in_minutes() -> None:
    assert advise_stalled(Phase.LOADING_WEIGHTS, 2940.0)[0] == (
        "No progress in the phase loading-weights for 49 minutes; heartbeats are no progress."
    )
