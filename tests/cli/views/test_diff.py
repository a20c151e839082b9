from gb300serve.cli.views.diff import markdown
from gb300serve.compare.diff import Side, difference


def test_nothing_of_a_value_is_taken_for_markup() -> None:
    words = ("a|b", "c`d", "```\nx")
    sides = [
        Side("b/v1", {"title": word, "engine": {"options": {"chat_template": word}}}, (("docker",), (word,)), word)
        for word in ("x", *words)
    ]
    shown = ["\n".join(markdown(difference(sides[0], side), "v_1", "v*2")) for side in sides[1:]]
    assert shown[0].startswith("### v\\_1 → v\\*2\n")
    assert '| `engine.options.chat_template` | `"x"` | `"a\\|b"` |' in shown[0]
    assert '| ``"c`d"`` |' in shown[1]
    assert "\n````diff\n" in shown[2]


def test_no_difference() -> None:
    side = Side("b/v1", {"title": "a"}, (("docker",),), "d")
    assert list(markdown(difference(side, side), "v1", "v2")) == ["### v1 → v2", "", "no difference"]
