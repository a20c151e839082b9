from gb300serve.lifecycle.steps import ApplyRestart, AwaitReady, CreateContainer, StartContainer, detached
from tests.support.launches import launch

V14 = launch()


def test_detached_stops_before_the_watch() -> None:
    created = CreateContainer(V14.plan, V14.labels)
    started, awaited = StartContainer("x", "x"), AwaitReady("x", "x")
    assert detached((created, started, awaited, ApplyRestart("x", "x", "always"))) == (created, started)
    assert detached((created,)) == (created,)
