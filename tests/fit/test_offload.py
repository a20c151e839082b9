from gb300serve.fit.checkpoint import Parameter, checkpoints
from gb300serve.fit.request import matches, offload, rounded_up

EXPERTS = ("routed_experts.w13_weight", "routed_experts.w2_weight")
FLASH = checkpoints()[0]


def staircase(asked: float) -> tuple[float, int]:
    moved = offload(FLASH.parameters, asked, EXPERTS)
    return round(moved.moved_gib, 2), len(moved.moved)


def test_the_measured_steps() -> None:
    assert {asked: staircase(asked) for asked in (0, 40, 54, 55, 56.95, 57, 60, 61, 61.17, 61.18, 70)} == {
        0: (0.0, 0),
        40: (42.19, 13),
        54: (54.84, 17),
        55: (56.95, 18),
        56.95: (56.95, 18),
        57: (61.17, 19),
        60: (61.17, 19),
        61: (61.17, 19),
        61.17: (61.17, 19),
        61.18: (63.28, 20),
        70: (73.83, 23),
    }


def test_all_experts_are_the_most_that_moves() -> None:
    moved = offload(FLASH.parameters, 1000, EXPERTS)
    assert (round(moved.moved_gib, 3), len(moved.moved), moved.unmatched) == (253.125, 80, ())


def test_patterns_are_whole_segments() -> None:
    name = "model.layers.7.ffn.experts.routed_experts.w13_weight"
    patterns = {
        "routed_experts.w13_weight": True,
        "routed_experts": True,
        "layers.7": True,
        "model": True,
        "w13_weight": True,
        "experts.*": False,
        "experts.w13_weight": False,
        "routed_experts.w13": False,
        "layers.": False,
        "routed_experts.w13_weight,routed_experts.w2_weight": False,
    }
    assert {pattern: matches(pattern, name) for pattern in patterns} == patterns


def test_what_matches_nothing_moves_nothing_and_is_named() -> None:
    moved = offload(FLASH.parameters, 60, ("experts.*", "routed_experts.w2_weight", "experts.w13_weight"))
    assert moved.unmatched == ("experts.*", "experts.w13_weight")
    assert {parameter.name.rpartition(".")[2] for parameter in moved.moved} == {"w2_weight"}
    assert offload(FLASH.parameters, 60, ("experts.*",)).moved == ()


def test_the_total_is_tested_before_each_parameter() -> None:
    ladder = (Parameter("a.x", 3), Parameter("b.x", 3), Parameter("c.x", 3))
    gib = 1024**3
    assert [len(offload(ladder, asked / gib, ()).moved) for asked in (0, 1, 3, 4, 6, 7, 99)] == [0, 1, 1, 2, 2, 3, 3]


def test_rounded_up_to_powers_of_two() -> None:
    assert [rounded_up(size) for size in (1, 2, 3, 4096, 4097)] == [1, 2, 4, 4096, 8192]
