import pytest

from gb300serve.boot.diagnosis import Diagnosis, Evidence, State, exit_code
from gb300serve.boot.phases import Phase
from gb300serve.boot.reasons import Reason


@pytest.mark.parametrize(
    ("state", "reason", "code"),
    [
        ("ready", None, 0),
        ("ready", Reason.HOOK_NOT_INSTALLED, 9),
        ("booting", None, 0),
        ("tuning", None, 0),
        ("stopped", None, 0),
        ("stalled", None, 8),
        ("failed", Reason.UNKNOWN, 8),
    ],
)
def test_the_exit_code_follows_from_the_state(state: State, reason: Reason | None, code: int) -> None:
    assert exit_code(Diagnosis(state, Phase.SERVING, reason)) == code


def test_the_object_has_the_keys_of_its_schema() -> None:
    diagnosis = Diagnosis(
        state="failed",
        phase=Phase.SIZING_KV_CACHE,
        reason=Reason.KV_CACHE_TOO_SMALL,
        values={"needed_gib": 2.5},
        evidence=(Evidence(412, "ValueError: …"),),
        advice=("max_model_len 123264 would fit.",),
        phases=((Phase.STARTING, 21.00049), (Phase.LOADING_WEIGHTS, 3.0)),
        boots=2,
    )
    assert diagnosis.as_json() == {
        "schema": "gb300serve.diagnosis/1",
        "state": "failed",
        "phase": "sizing-kv-cache",
        "reason": "kv-cache-too-small",
        "values": {"needed_gib": 2.5},
        "evidence": [{"line": 412, "text": "ValueError: …"}],
        "advice": ["max_model_len 123264 would fit."],
        "phases": [{"name": "starting", "seconds": 21.0}, {"name": "loading-weights", "seconds": 3.0}],
        "boots": 2,
    }
