from gb300serve.engines.problem import NAMES, Problem, dotted, swallowed


def test_every_code_has_a_name_of_its_own() -> None:
    assert len(set(NAMES.values())) == len(NAMES) == 14


def test_a_list_that_swallows() -> None:
    problem = swallowed("cpu_offload_params", "x")
    message = "cpu_offload_params takes several words and stands last: the engine would take 'x' behind it for one more"
    hint = "move an option that takes one value behind it"
    assert problem == Problem(("cpu_offload_params",), "OPT009", message, hint)
    assert problem.name == "list-swallows-next-words"


def test_address() -> None:
    assert dotted(()) == "engine.options"
    assert dotted(("a", 0, "b")) == "engine.options.a.0.b"
