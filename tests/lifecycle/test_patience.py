from gb300serve.boot.phases import Phase
from gb300serve.lifecycle.ready import patience


def test_patience_follows_the_phase_and_what_is_expected() -> None:
    assert patience(None, {}) == 1800.0
    assert patience(Phase.LOADING_WEIGHTS, {"loading-weights": 153.0}) == 1800.0
    assert patience(Phase.LOADING_WEIGHTS, {"loading-weights": 600.0}) == 6000.0
    assert patience(Phase.TUNING_KERNELS, {"tuning-kernels": 7.0}) == 5400.0
