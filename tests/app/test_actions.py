import pytest

from gb300serve.app.actions import Invocation, render_suggestions, suggesting
from gb300serve.core.errors import Action, Gb300Error

V14 = Invocation("deepseek-v4.1-flash/v14")
CHANGED = Invocation("./my v14.yaml", "sim", overrides=("engine.options.seed=3",))
ELSEWHERE = Invocation("./my v14.yaml", "sim", ("--site", "my site.yaml"))


@pytest.mark.parametrize(
    ("invocation", "action", "command"),
    [
        (V14, Action("logs"), "gb300serve logs deepseek-v4.1-flash/v14"),
        (
            CHANGED,
            Action("up", arguments=("--replace",)),
            "gb300serve up './my v14.yaml' --on sim --set engine.options.seed=3 --replace",
        ),
        (CHANGED, Action("doctor"), "gb300serve doctor './my v14.yaml' --on sim --set engine.options.seed=3"),
        (CHANGED, Action("fit"), "gb300serve fit './my v14.yaml' --set engine.options.seed=3"),
        (CHANGED, Action("down"), "gb300serve down './my v14.yaml' --on sim"),
        (ELSEWHERE, Action("cache seed"), "gb300serve cache seed './my v14.yaml' --on sim --site 'my site.yaml'"),
        (ELSEWHERE, Action("down", ref="other/v1"), "gb300serve down other/v1 --on sim --site 'my site.yaml'"),
        (ELSEWHERE, Action("status", ref=""), "gb300serve status --on sim --site 'my site.yaml'"),
        (ELSEWHERE, Action("journal", "see why", ref=""), "see why: gb300serve journal --site 'my site.yaml'"),
        (V14, "docker stop someone", "docker stop someone"),
    ],
)
def test_a_command_means_the_same_release(invocation: Invocation, action: Action | str, command: str) -> None:
    assert invocation.render(action) == command


def test_suggestions_follow_the_hint_line_by_line() -> None:
    error = Gb300Error("wrong", hint="it keeps running", suggest=(Action("logs", "read its log"), Action("down")))
    with pytest.raises(Gb300Error), suggesting(V14):
        raise error
    assert error.hint == (
        "it keeps running\nread its log: gb300serve logs deepseek-v4.1-flash/v14\n"
        "gb300serve down deepseek-v4.1-flash/v14"
    )
    render_suggestions(error, ELSEWHERE)
    assert error.suggest == ()
    assert error.hint is not None
    assert "my site.yaml" not in error.hint, "the first one that renders knows the release"


def test_suggestions_that_end_the_message() -> None:
    class OneLineError(Gb300Error):
        suggests_in_message = True

    error = OneLineError("interrupted", suggest=(Action("up", "watch it again"), Action("down", "stop it")))
    render_suggestions(error, Invocation("v14"))
    assert (error.message, error.hint) == (
        "interrupted; watch it again: gb300serve up v14; stop it: gb300serve down v14",
        None,
    )
