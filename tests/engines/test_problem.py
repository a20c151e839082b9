from gb300serve.engines.base import dotted


def test_address() -> None:
    assert dotted(()) == "engine.options"
    assert dotted(("a", 0, "b")) == "engine.options.a.0.b"
