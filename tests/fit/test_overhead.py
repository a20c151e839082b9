from gb300serve.fit.checkpoint import checkpoints
from gb300serve.fit.memory import measured_boots
from gb300serve.fit.model import GB300

BOOTS = {one.boot.name: one for one in measured_boots(checkpoints()[0], GB300.total_gib)}


def test_every_boot_of_one_shape_gives_the_same_constant() -> None:
    shape = ("v11", "v12", "v13", "v14", "offload 55", "1M at utilisation 0.94")
    constants = [BOOTS[name].constant for name in shape]
    assert max(constants) - min(constants) < 0.03
    assert round(sum(constants) / len(constants), 2) == 298.61


def test_other_shapes_have_other_constants() -> None:
    named = ("v4", "v5", "131K with DSpark", "v15")
    assert {name: round(BOOTS[name].constant, 1) for name in named} == {
        "v4": 284.0,
        "v5": 284.0,
        "131K with DSpark": 293.1,
        "v15": 298.7,
    }


def test_boots_without_a_measured_cache_teach_nothing() -> None:
    assert "v12 with three tiers" not in BOOTS
