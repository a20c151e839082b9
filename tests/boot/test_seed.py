import pytest

from gb300serve.boot.facts import seed_in
from tests.boot.sglang_logs import ARGUMENTS, SEED


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
def test_the_seed_stands_in_the_echo(text: str, seed: int | None) -> None:
    assert seed_in(text) == seed
