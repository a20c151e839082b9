from gb300serve.engines.options import EngineOption, JsonField, read_option


def test_a_row_says_only_what_is_not_common() -> None:
    common = read_option("a_b", {})
    assert common == EngineOption(
        key="a_b",
        flag="--a-b",
        kind="text",
        arity="one",
        aliases=(),
        off=(),
        choices=(),
        folds=False,
        nullable=False,
        plain=False,
        shape="mapping",
        default=None,
        fields=None,
        config=None,
    )
    assert (common.takes_json, common.positional, common.shown) == (False, False, "--a-b")


def test_a_full_row() -> None:
    row = {
        "flag": "",
        "kind": "json-dataclass",
        "arity": "many",
        "aliases": ["-a"],
        "off": ["--no-a"],
        "choices": ["x"],
        "folds": True,
        "nullable": True,
        "plain": True,
        "shape": "list",
        "default": 1,
        "deprecated": True,
        "class": "AConfig",
        "refusal": "not {word}",
        "fields": {"n": {"kind": "int|null", "ge": 1, "lt": 9, "choices": [2, 3]}, "s": "text"},
    }
    full = read_option("a", row)
    fields = {
        "n": JsonField(frozenset({"int", "null"}), (2, 3), (("ge", 1), ("lt", 9))),
        "s": JsonField(frozenset({"text"})),
    }
    assert full == EngineOption(
        "a", "", "json-dataclass", "many", ("-a",), ("--no-a",), ("x",),
        True, True, True, "list", 1, fields, "AConfig", "not {word}",
    )  # fmt: skip
    assert (full.takes_json, full.positional, full.shown) == (True, True, "a")
