import pytest

from gb300serve.engines.sglang.start import is_same_start, seed_in
from tests.boot.sglang_logs import ARGUMENTS, SEED

TOLD = {"random_seed": 421873650, "load_weight": 61.2, "scheduler_e2e": 118.02, "tokenizer_e2e": 119.51}
INFO = {
    "random_seed": 421873650,
    "startup_time": {"load_weight": 61.2049, "scheduler_e2e": 118.0151, "tokenizer_e2e": 119.51, "cuda_graph": {}},
}


@pytest.mark.parametrize(
    ("text", "seed"),
    [
        (f"[2026-09-29 21:29:50] {ARGUMENTS}", SEED),
        ("[2026-09-29 21:29:50] server_args=ServerArgs(model_path='/m', random_seed=77, context_length=9)", 77),
        ("server_args={'model_path': '/m', 'random_seed': None}", None),
        ("server_args={'model_path': '/m', 'random_", None),
        ("random_seed=77", None),
    ],
)
def test_the_echo_contains_the_seed(text: str, seed: int | None) -> None:
    assert seed_in(text) == ({} if seed is None else {"random_seed": seed})


@pytest.mark.parametrize(
    ("info", "figures", "same"),
    [
        (INFO, TOLD, True),
        ({**INFO, "startup_time": {"load_weight": 61.2, "scheduler_e2e": 118.03}}, TOLD, False),
        # A seed that a recipe sets is the same at every start, so the times decide.
        ({**INFO, "startup_time": {"load_weight": 60.0}}, TOLD, False),
        ({"random_seed": 421873650}, TOLD, True),
        ({"random_seed": 7, "startup_time": None}, TOLD, False),
        ({"random_seed": 7}, {"load_weight": 61.2}, None),
        ({"random_seed": None}, TOLD, None),
    ],
)
def test_figures_of_one_start(info: dict[str, object], figures: dict[str, float], same: bool | None) -> None:
    assert is_same_start(info, figures) is same
