from gb300serve.core.values import Value, WrittenFloat
from gb300serve.engines.problem import Problem
from gb300serve.engines.registry import engine

SGLANG = engine("sglang")
OPTIONS: dict[str, Value] = {
    "tp_size": 1,
    "model_path": "/model",
    "mem_fraction_static": WrittenFloat("0.90"),
    "trust_remote_code": True,
    "lora_paths": ["a", "b"],
    "json_model_override_args": {"a": 1},
    "nothing": None,
}
NOTE = Problem((), "OPT008", "sglang 0.5.0 has no option table: its options are unchecked", None, "note")


def test_options_are_said_by_the_common_form() -> None:
    assert SGLANG.argv(OPTIONS, "0.5.0") == (
        "--tp-size", "1", "--model-path", "/model", "--mem-fraction-static", "0.90", "--trust-remote-code",
        "--lora-paths", "a", "b", "--json-model-override-args", '{"a":1}',
    )  # fmt: skip
    assert SGLANG.argv({"x": 1, "model_tag": "/model"}, None) == ("/model", "--x", "1")


def test_options_are_unchecked_and_a_note_says_so() -> None:
    assert SGLANG.check(OPTIONS, "0.5.0") == (NOTE,)
    assert SGLANG.check({}, None) == (
        Problem((), "OPT008", "sglang has no option table: its options are unchecked", None, "note"),
    )


def test_false_has_no_form() -> None:
    off = Problem(
        ("enable_x",), "OPT005", "enable_x cannot be switched off: the off form of its flag is unknown", "leave it out"
    )
    assert SGLANG.check({"enable_x": False}, "0.5.0") == (off, NOTE)


def test_what_the_rest_asks() -> None:
    assert (SGLANG.name, SGLANG.port({}), SGLANG.port({"port": 8021})) == ("sglang", 30000, 8021)
    assert SGLANG.model_path(OPTIONS) == "/model"
    assert SGLANG.served_names(OPTIONS) == ("/model",)
    assert SGLANG.served_names({"served_model_name": "a"}) == ("a",)
    assert SGLANG.open_list({"port": 1, "lora_paths": ["a"]}, None) == "lora_paths"
    assert SGLANG.open_list(OPTIONS, None) is None
    assert SGLANG.open_list({}, None) is None
