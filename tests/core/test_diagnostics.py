from gb300serve.core.diagnostics import RANK, Diagnostic


def test_the_object_of_every_output() -> None:
    found = Diagnostic("OFF002", "a-name", "error", "m", "h", "f.yaml", 12, 7, "engine.options.a.0")
    assert list(found.as_json().items()) == [
        ("code", "OFF002"), ("name", "a-name"), ("severity", "error"), ("message", "m"), ("hint", "h"),
        ("file", "f.yaml"), ("line", 12), ("column", 7), ("path", "engine.options.a.0"),
    ]  # fmt: skip


def test_severities_have_an_order() -> None:
    assert RANK["note"] < RANK["warning"] < RANK["error"]
