from gb300serve.engines.problem import NAMES, dotted


def test_every_code_has_a_name_of_its_own() -> None:
    assert len(set(NAMES.values())) == len(NAMES) == 14


def test_address() -> None:
    assert dotted(()) == "engine.options"
    assert dotted(("a", 0, "b")) == "engine.options.a.0.b"
